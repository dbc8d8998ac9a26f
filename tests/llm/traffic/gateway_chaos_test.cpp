#include "llm/money/dry_run.hpp"
#include "tests/llm/traffic/gateway_driver.hpp"

#include <random>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// A server that fails in every way, and keeps its own bill.
struct faulty_server {
  uint64_t billed_nano_usd = 0;
  uint64_t billed_tokens = 0;
  uint64_t requests = 0;

  /// What the gateway sees of a call, and how long it takes. `unknown`: the bill was written, and
  /// the gateway cannot know it.
  struct outcome {
    try_result seen;
    nanoseconds after{0};
  };

  outcome serve(const gateway_driver::sent& call, std::mt19937_64& random) {
    outcome out;
    out.after = std::chrono::milliseconds{1 + random() % 5000};
    const auto& r = call.request;
    auto work = [&](uint64_t output) {
      llm_usage used{usage_state::exact, input_tokens_likely(r) / 2, input_tokens_likely(r) / 3, 0,
        output / 2, output - output / 2};
      billed_nano_usd += cost_of(plain_price("x"), used);
      billed_tokens += used.input() + used.output();
      return used;
    };
    const auto cap = r.output_tokens_max;
    const auto drawn = random() % 100;
    if (drawn != 0)
      ++requests;
    if (drawn == 0) {
      out.seen = a_failure(trouble_kind::overload, "no route");
      out.seen.sent = false;
    } else if (drawn < 60) {
      out.seen = an_answer();
      out.seen.reply.usage = work(1 + random() % cap);
    } else if (drawn < 66) {
      out.seen = an_answer("half", finish_kind::length);
      out.seen.reply.usage = work(cap);
    } else if (drawn < 70) {
      out.seen = an_answer("", finish_kind::stop);
      out.seen.reply.usage = work(1);
    } else if (drawn < 72) {
      out.seen = an_answer("no", finish_kind::refusal);
      out.seen.reply.usage = work(30);
    } else if (drawn < 80) {
      // Cut off in the stream: worked, billed, and the usage never came.
      work(random() % cap);
      out.seen = a_failure(trouble_kind::ambiguous, "cut off");
    } else if (drawn < 83) {
      // A gateway gave up on its model server, which went on; or never began.
      if (random() % 2 == 0)
        work(random() % cap);
      out.seen = a_failure(trouble_kind::transient, "502");
      out.seen.refused_unbilled = false;
    } else if (drawn < 88) {
      out.seen = a_failure(trouble_kind::transient, "503");
    } else if (drawn < 93) {
      out.seen = a_failure(
        trouble_kind::throttle, "429", std::chrono::seconds{random() % 2 == 0 ? 0 : random() % 20});
    } else if (drawn < 97) {
      out.seen = a_failure(trouble_kind::overload, "529");
    } else if (drawn < 98) {
      out.seen = a_failure(trouble_kind::too_big, "413");
    } else if (drawn < 99) {
      out.seen = a_failure(trouble_kind::config, "400");
      out.seen.status = 400;
    } else {
      // Never comes back: the gateway has to give it up.
      work(random() % cap);
      out.after = 100h;
      out.seen = a_failure(trouble_kind::ambiguous);
    }
    return out;
  }
};

} // namespace

TEST_SUITE_BEGIN("gateway chaos");

TEST_CASE("whatever a server does, the ledger is its bill, and the rest is held as unknown") {
  uint64_t calls_of_all_seeds = 0;
  uint64_t unknown_of_all_seeds = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    auto config = some_deployments(1 + seed % 3);
    config.seed = seed;
    config.policy.patience = 30min;
    config.policy.config_failures_max = 1000;
    for (auto& d : config.models.deployments) {
      d.in_flight_max = 6;
      d.output_tokens_per_minute = 500'000;
      d.deadlines.wall = 60s;
    }
    if (seed % 2 == 0) {
      config.limits.run.nano_usd = 3'000'000'000;
      config.limits.each_agent.calls = 60;
      config.limits.each_problem.tokens = 400'000;
    }
    const auto limits = config.limits;
    gateway_driver g(config);
    faulty_server server;
    struct coming {
      nanoseconds at;
      uint64_t id;
      try_result seen;
    };
    std::vector<coming> under_way;
    uint64_t asked = 0;
    uint64_t next_call = 0;
    for (int step = 0; step < 3000; ++step) {
      if (step < 2000 && random() % 3 != 0) {
        auto agent = "w" + std::to_string(random() % 8);
        g.ask(a_request(next_call++, agent, "p" + std::to_string(random() % 3),
          static_cast<uint32_t>(100 + random() % 1500)));
        ++asked;
        if (random() % 40 == 0)
          g.cancel(agent, next_call - 1);
      }
      while (!g.open.empty()) {
        auto [seen, after] = server.serve(g.open.front(), random);
        seen.id = g.open.front().record.id;
        under_way.push_back({g.now + after, seen.id, seen});
        g.open.pop_front();
      }
      // A call that we end ends soon, and what it cost we do not learn.
      for (auto id : std::exchange(g.cancelled, {}))
        for (auto& c : under_way)
          if (c.id == id) {
            c.at = g.now;
            c.seen = {};
            c.seen.id = id;
            c.seen.cancelled = true;
          }
      g.advance(std::chrono::milliseconds{random() % 1500});
      for (size_t i = 0; i < under_way.size();) {
        if (under_way[i].at > g.now) {
          ++i;
          continue;
        }
        auto seen = under_way[i].seen;
        under_way.erase(under_way.begin() + static_cast<int64_t>(i));
        g.take(g.core.on_ended(seen, g.now));
      }
      if (limits.run.nano_usd) {
        const auto& a = g.run();
        REQUIRE(a.spent.nano_usd + a.held.nano_usd + a.reserved.nano_usd <= *limits.run.nano_usd);
      }
    }
    for (int turn = 0; turn < 5000 && g.done.size() < asked; ++turn) {
      while (!g.open.empty()) {
        auto call = g.open.front();
        g.open.pop_front();
        auto seen = server.serve(call, random).seen;
        seen.id = call.record.id;
        g.take(g.core.on_ended(seen, g.now));
      }
      g.advance(10s);
    }
    g.take(g.core.on_shutdown({}, g.now));

    // Every call is answered exactly once (the driver fails on a second answer).
    CHECK(g.done.size() == asked);
    const auto& a = g.run();
    CHECK(a.reserved == budget_amounts{});
    CHECK(g.core.book().open() == 0);
    // The count of requests is exact; money and tokens lie between what is known and what is held.
    CHECK(a.spent.calls == server.requests);
    CHECK(a.spent.nano_usd <= server.billed_nano_usd);
    CHECK(server.billed_nano_usd <= a.spent.nano_usd + a.held.nano_usd);
    CHECK(a.spent.tokens <= server.billed_tokens);
    CHECK(server.billed_tokens <= a.spent.tokens + a.held.tokens);
    // The log says the same as the ledger, try by try.
    budget_amounts spent;
    budget_amounts held;
    uint64_t unknown = 0;
    for (const auto& r : g.ended) {
      spent += r.spent;
      held += r.held;
      unknown += r.held.tokens > 0 ? 1 : 0;
    }
    CHECK(g.ended.size() == g.sends);
    CHECK(spent == a.spent);
    CHECK(held == a.held);
    CHECK(g.core.snapshot(g.now).calls_unknown == unknown);
    CHECK(unknown < g.sends);
    calls_of_all_seeds += g.sends;
    unknown_of_all_seeds += unknown;
  }
  // The faults did happen.
  CHECK(unknown_of_all_seeds > 100);
  CHECK(calls_of_all_seeds > 10'000);
  MESSAGE(
    calls_of_all_seeds << " tries, of which " << unknown_of_all_seeds << " with unknown cost");
}

TEST_CASE("without unknown calls the ledger is the server's bill to the nano-USD") {
  gateway_driver g(some_deployments(2));
  std::mt19937_64 random(3);
  uint64_t bill = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    g.ask(a_request(i));
    while (!g.open.empty()) {
      auto how = an_answer();
      how.reply.usage = {usage_state::exact, random() % 900, random() % 900, random() % 900,
        random() % 900, random() % 900};
      bill += cost_of(plain_price("x"), how.reply.usage);
      if (random() % 5 == 0)
        how.reply.finish = finish_kind::refusal;
      g.finish(how);
    }
  }
  CHECK(g.run().spent.nano_usd == bill);
  CHECK(g.run().held == budget_amounts{});
}

TEST_CASE("the dry run's worst case of a call is never exceeded by what the gateway does with it") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    auto config = some_deployments(1);
    config.policy.retries_at_start = 1000;
    const auto request = a_request(1, "w0", "softmax", 700);
    dry_run_settings settings;
    settings.roles = {{"propose", 1, input_tokens_max(request), 700}};
    auto table = worst_case_cost(config.models, settings);
    REQUIRE(table);
    gateway_driver g(config);
    g.ask(request);
    while (g.done.empty()) {
      g.advance_to_send();
      auto cap = g.open[0].request.output_tokens_max;
      // The dearest ends there are.
      switch (random() % 3) {
      case 0:
        g.finish(an_answer("half", finish_kind::length, 0, cap));
        break;
      case 1:
        g.finish(a_failure(trouble_kind::ambiguous));
        break;
      default: {
        auto how = a_failure(trouble_kind::transient);
        how.refused_unbilled = false;
        g.finish(how);
      }
      }
    }
    CHECK(g.run().spent.nano_usd + g.run().held.nano_usd <= *table->nano_usd);
    CHECK(g.run().spent.tokens + g.run().held.tokens <= *table->tokens);
    CHECK(g.run().spent.calls <= *table->calls);
  }
}

TEST_CASE("the policy that the dry run reckons with is the gateway's") {
  gateway_policy policy;
  auto config = some_deployments(1);
  config.models.deployments[0].output_tokens_max = 1'000'000;
  dry_run_settings settings;
  settings.roles = {{"propose", 1, 10, 1}};
  auto table = worst_case_cost(config.models, settings);
  REQUIRE(table);
  CHECK(table->rows[0].call_tries_worst == 1 + policy.retries_max + policy.truncation_resends_max);
}

TEST_SUITE_END();
