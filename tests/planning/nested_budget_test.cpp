#include "planning/gpu_budget.hpp"
#include "planning/nested_budget.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

budget_amounts money(uint64_t nano_usd) {
  budget_amounts out;
  out.nano_usd = nano_usd;
  return out;
}

nested_budget::limits run_of(uint64_t nano_usd) {
  nested_budget::limits out;
  out.run.nano_usd = nano_usd;
  return out;
}

/// The ledger as a list of everything that ever happened, summed up anew for each question.
struct naive_ledger {
  struct entry {
    std::string problem;
    std::string agent;
    budget_amounts spent, held, reserved;
  };
  std::map<uint64_t, entry> open;
  std::vector<entry> closed;

  template <class F>
  budget_account sum(F matches) const {
    budget_account out;
    auto add = [&](const entry& e) {
      if (!matches(e))
        return;
      out.spent += e.spent;
      out.held += e.held;
      out.reserved += e.reserved;
    };
    for (const auto& [ticket, e] : open)
      add(e);
    for (const auto& e : closed)
      add(e);
    return out;
  }
};

budget_amounts drawn(std::mt19937_64& random) {
  budget_amounts out;
  out.nano_usd = random() % 1000;
  out.tokens = random() % 500;
  out.calls = random() % 3;
  out.gpu_ns = random() % 700;
  out.attempts = random() % 2;
  return out;
}

bool within(const budget_limits& limits, const budget_account& a) {
  for (auto kind : {budget_kind::money, budget_kind::tokens, budget_kind::calls,
         budget_kind::gpu_time, budget_kind::attempts})
    if (limits.of(kind)
      && a.spent.of(kind) + a.held.of(kind) + a.reserved.of(kind) > *limits.of(kind))
      return false;
  return true;
}

} // namespace

TEST_SUITE_BEGIN("nested budget");

TEST_CASE("what is reserved cannot be reserved again, and comes back when it is released") {
  nested_budget book(run_of(100));
  auto first = book.reserve("softmax", "worker-0", money(60));
  CHECK(first != 0);
  CHECK(book.reserve("softmax", "worker-1", money(41)) == 0);
  CHECK(book.reserve("softmax", "worker-1", money(40)) != 0);
  CHECK(book.release(first));
  CHECK(book.reserve("softmax", "worker-1", money(60)) != 0);
}

TEST_CASE("the refusal names the innermost budget that is missing something, and by how much") {
  nested_budget::limits limits;
  limits.run.nano_usd = 1'000'000'000;
  limits.each_problem.tokens = 1000;
  limits.each_agent.calls = 1;
  nested_budget book(limits);
  budget_amounts wants;
  wants.tokens = 1001;
  auto no = book.would_refuse("softmax", "worker-0", wants);
  REQUIRE(no);
  CHECK(no->whose == "problem 'softmax'");
  CHECK(no->kind == budget_kind::tokens);
  CHECK(no->missing == 1);
  CHECK(no->text()
    == "the budget of problem 'softmax' is 1000 tokens and does not hold 1001 tokens more: 1 "
       "tokens "
       "are missing");
  wants = money(1'500'000'000);
  no = book.would_refuse("softmax", "worker-0", wants);
  REQUIRE(no);
  CHECK(no->of_run);
  CHECK(no->text().find("0.5 USD are missing") != std::string::npos);
  budget_amounts call;
  call.calls = 1;
  CHECK(book.settle(book.reserve("softmax", "worker-0", call), call));
  no = book.would_refuse("gemm", "worker-0", call);
  REQUIRE(no);
  CHECK(no->whose == "agent 'worker-0'");
  CHECK_FALSE(book.would_refuse("gemm", "worker-1", call));
}

// litellm#36926 and #30460: under load a budget was called exceeded because of calls under way.
TEST_CASE("litellm#36926: what is only under way refuses for now and not for good") {
  nested_budget book(run_of(100));
  auto open = book.reserve("a", "w", money(80));
  auto no = book.would_refuse("a", "w", money(30));
  REQUIRE(no);
  CHECK_FALSE(no->for_good);
  CHECK(book.settle(open, money(10)));
  CHECK_FALSE(book.would_refuse("a", "w", money(30)));
  CHECK(book.would_refuse("a", "w", money(91))->for_good);
}

TEST_CASE("litellm#30460: a ticket is counted once, however often it is closed") {
  nested_budget book(run_of(100));
  auto ticket = book.reserve("a", "w", money(50));
  CHECK(book.settle(ticket, money(20)));
  CHECK_FALSE(book.settle(ticket, money(20)));
  CHECK_FALSE(book.hold(ticket));
  CHECK_FALSE(book.release(ticket));
  CHECK(book.run().spent.nano_usd == 20);
  CHECK(book.run().reserved.nano_usd == 0);
  CHECK_FALSE(book.settle(999, money(1)));
}

TEST_CASE("what nobody knows stays taken in its worst case, of which the known part is spent") {
  nested_budget book(run_of(100));
  budget_amounts worst = money(70);
  worst.calls = 1;
  budget_amounts known;
  known.calls = 1;
  CHECK(book.hold(book.reserve("a", "w", worst), known));
  CHECK(book.run().held.nano_usd == 70);
  CHECK(book.run().held.calls == 0);
  CHECK(book.run().spent.calls == 1);
  CHECK(book.would_refuse("a", "w", money(31))->for_good);
}

TEST_CASE("more than was reserved is counted too: bills are not argued with") {
  nested_budget book(run_of(100));
  CHECK(book.settle(book.reserve("a", "w", money(10)), money(150)));
  CHECK(book.run().spent.nano_usd == 150);
  CHECK(book.would_refuse("a", "w", money(1))->for_good);
  // What asks for no money is not stopped by it.
  budget_amounts free;
  free.tokens = 5;
  CHECK_FALSE(book.would_refuse("a", "w", free));
}

TEST_CASE("sums that reach the end of the numbers stay there") {
  nested_budget book;
  auto huge = book.reserve("a", "w", money(UINT64_MAX));
  auto more = book.reserve("b", "v", money(UINT64_MAX - 5));
  REQUIRE(huge != 0);
  REQUIRE(more != 0);
  CHECK(book.run().reserved.nano_usd == UINT64_MAX);
  CHECK(book.release(huge));
  CHECK(book.run().reserved.nano_usd == UINT64_MAX - 5);
  CHECK(book.problem("a").reserved.nano_usd == 0);
  CHECK(book.settle(more, money(UINT64_MAX)));
  book.restore("a", "w", money(7), money(7));
  CHECK(book.run().spent.nano_usd == UINT64_MAX);
  CHECK(book.run().reserved.nano_usd == 0);
  nested_budget limited(run_of(UINT64_MAX));
  CHECK(limited.reserve("a", "w", money(UINT64_MAX)) != 0);
  CHECK(limited.reserve("a", "w", money(0)) != 0);
}

TEST_CASE("random sequences agree with a ledger that forgets nothing, and no limit is broken") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    nested_budget::limits limits;
    limits.run.nano_usd = 20'000;
    limits.run.tokens = 15'000;
    limits.each_problem.nano_usd = 8'000;
    limits.each_problem.gpu_ns = 9'000;
    limits.each_agent.calls = 25;
    limits.each_agent.attempts = 12;
    nested_budget book(limits);
    naive_ledger naive;
    bool overspent = false;
    for (int step = 0; step < 400; ++step) {
      auto problem = "p" + std::to_string(random() % 4);
      auto agent = "a" + std::to_string(random() % 5);
      auto pick = [&] {
        auto at = naive.open.begin();
        std::advance(at, static_cast<int64_t>(random() % naive.open.size()));
        return at;
      };
      switch (random() % 6) {
      case 0:
      case 1:
      case 2: {
        auto worst = drawn(random);
        auto no = book.would_refuse(problem, agent, worst);
        auto ticket = book.reserve(problem, agent, worst);
        REQUIRE((ticket == 0) == no.has_value());
        if (ticket != 0)
          naive.open[ticket] = {problem, agent, {}, {}, worst};
        break;
      }
      case 3: {
        if (naive.open.empty())
          break;
        auto at = pick();
        auto used = drawn(random);
        const auto& r = at->second.reserved;
        // Mostly within what was reserved.
        if (random() % 10 != 0)
          used = {std::min(used.nano_usd, r.nano_usd), std::min(used.tokens, r.tokens),
            std::min(used.calls, r.calls), std::min(used.gpu_ns, r.gpu_ns),
            std::min(used.attempts, r.attempts)};
        else
          overspent = true;
        REQUIRE(book.settle(at->first, used));
        naive.closed.push_back({at->second.problem, at->second.agent, used, {}, {}});
        naive.open.erase(at);
        break;
      }
      case 4: {
        if (naive.open.empty())
          break;
        auto at = pick();
        REQUIRE(book.hold(at->first));
        naive.closed.push_back({at->second.problem, at->second.agent, {}, at->second.reserved, {}});
        naive.open.erase(at);
        break;
      }
      case 5: {
        if (naive.open.empty())
          break;
        auto at = pick();
        REQUIRE(book.release(at->first));
        REQUIRE_FALSE(book.release(at->first));
        naive.open.erase(at);
        break;
      }
      }
      REQUIRE(book.run() == naive.sum([](const auto&) { return true; }));
      REQUIRE(
        book.problem(problem) == naive.sum([&](const auto& e) { return e.problem == problem; }));
      REQUIRE(book.agent(agent) == naive.sum([&](const auto& e) { return e.agent == agent; }));
      REQUIRE(book.open() == naive.open.size());
      if (!overspent) {
        REQUIRE(within(limits.run, book.run()));
        REQUIRE(within(limits.each_problem, book.problem(problem)));
        REQUIRE(within(limits.each_agent, book.agent(agent)));
      }
    }
  }
}

TEST_CASE("GPU time and attempts of a problem and an agent are reserved before and settled after") {
  budget_limits of_problem;
  of_problem.gpu_ns = 100;
  of_problem.nano_usd = 1; // The gateway's; the planner does not look at it.
  budget_limits of_agent;
  of_agent.attempts = 2;
  gpu_budget budget(of_problem, of_agent, std::chrono::nanoseconds{60}); // Expected: 60.
  REQUIRE(budget.limits_anything());
  CHECK(budget.begin("softmax/cuda/0", "softmax", "worker-0"));
  CHECK_FALSE(budget.begin("softmax/cuda/0", "softmax", "worker-0"));
  // Two of 60 do not fit into 100 at once.
  CHECK_FALSE(budget.would_refuse("softmax", "worker-1")->for_good);
  CHECK(budget.end("softmax/cuda/0", 40, true));
  CHECK_FALSE(budget.end("softmax/cuda/0", 40, true));
  CHECK(budget.begin("softmax/cuda/1", "softmax", "worker-1"));
  // It was held for longer than expected, and is counted as it was.
  CHECK(budget.end("softmax/cuda/1", 70, true));
  CHECK(budget.would_refuse("softmax", "worker-1")->whose == "problem 'softmax'");
  CHECK(budget.begin("gemm/cuda/0", "gemm", "worker-0"));
  CHECK(budget.end("gemm/cuda/0", 1, true));
  CHECK(budget.would_refuse("gemm", "worker-0")->kind == budget_kind::attempts);
}

TEST_CASE("an attempt from a log is counted although it would not fit any more") {
  budget_limits of_problem;
  of_problem.gpu_ns = 100;
  gpu_budget budget(of_problem, {}, std::chrono::nanoseconds{60});
  budget.begin_again("softmax/cuda/0", "softmax", "w0");
  budget.begin_again("softmax/cuda/1", "softmax", "w1");
  CHECK(budget.end("softmax/cuda/0", 50, true));
  CHECK(budget.end("softmax/cuda/1", 45, true));
  CHECK(budget.book().problem("softmax").spent.gpu_ns == 95);
  gpu_budget none;
  CHECK_FALSE(none.limits_anything());
  CHECK(none.begin("x", "x", "w"));
  CHECK_FALSE(none.would_refuse("x", "w"));
}

TEST_CASE("a budget smaller than what is expected of an attempt still holds a first one") {
  budget_limits of_problem;
  of_problem.gpu_ns = 5;
  gpu_budget budget(of_problem, {}, std::chrono::nanoseconds{60});
  CHECK(budget.begin("p/cuda/0", "p", "w0"));
  CHECK(budget.end("p/cuda/0", 5, true));
  CHECK(budget.would_refuse("p", "w0")->for_good);
}

TEST_SUITE_END();
