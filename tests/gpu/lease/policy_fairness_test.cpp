#include "tests/gpu/lease/policy_support.hpp"
#include "tests/support/closed_queue.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <queue>
#include <set>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

// The bounds that the policies promise, with flows that always have somebody waiting.

namespace {

constexpr nanoseconds longest_hold = 60s;

/// Flows with weights that each always keep `gpus + 1` requests waiting on some GPUs in virtual
/// time; holds are any up to the longest.
struct backlog {
  lease_policy& policy;
  std::vector<uint32_t> weights;
  uint32_t gpus = 1;
  uint64_t seed = 1;
  std::vector<double> used_s{};
  std::vector<uint64_t> grants{};

  void run(
    uint64_t leases, const std::function<void()>& after_each = [] {}) {
    used_s.assign(weights.size(), 0);
    grants.assign(weights.size(), 0);
    std::vector<uint32_t> of{0};
    nanoseconds now{0};
    auto ask = [&](uint32_t flow) {
      auto w =
        make_waiter(of.size(), fmt::format("flow-{}", flow), "a", any_need, 30s, weights[flow]);
      w.arrived = now;
      of.push_back(flow);
      policy.on_request(w);
    };
    for (uint32_t i = 0; i <= gpus; ++i)
      for (uint32_t flow = 0; flow < weights.size(); ++flow)
        ask(flow);
    struct lease {
      nanoseconds end;
      uint32_t gpu;
      uint64_t ticket;
      nanoseconds held;
      auto operator<=>(const lease&) const = default;
    };
    std::priority_queue<lease, std::vector<lease>, std::greater<>> running;
    auto serve_gpu = [&](uint32_t gpu) {
      auto ticket = policy.pick({gpu, 1}, now);
      REQUIRE(ticket);
      policy.on_grant(*ticket, gpu, now);
      auto flow = of[*ticket];
      ++grants[flow];
      // Long holds in some flows, short ones in others.
      auto held = nanoseconds{1
        + static_cast<int64_t>(counter_unit(seed, flow, *ticket)
          * static_cast<double>(longest_hold.count()) / (1 + flow % 3))};
      running.push({now + held, gpu, *ticket, held});
      ask(flow);
    };
    for (uint32_t gpu = 0; gpu < gpus; ++gpu)
      serve_gpu(gpu);
    for (uint64_t i = 0; i < leases; ++i) {
      auto done = running.top();
      running.pop();
      now = done.end;
      policy.on_release({done.ticket, done.gpu, done.held}, "done", now);
      used_s[of[done.ticket]] += std::chrono::duration<double>(done.held).count();
      after_each();
      serve_gpu(done.gpu);
    }
  }

  double total() const {
    double out = 0;
    for (double s : used_s)
      out += s;
    return out;
  }

  double weight_share(size_t flow) const {
    double sum = 0;
    for (auto w : weights)
      sum += w;
    return weights[flow] / sum;
  }
};

constexpr double longest_s = 60;

} // namespace

TEST_CASE("shares of flows that always wait differ from their weights by (c + 1) longest holds") {
  for (const char* text : {"stride(by=problem)", "stride", "drr(by=problem,quantum=1s)",
         "maxmin(by=problem,half_life=36500d)"})
    for (uint32_t gpus : {1u, 2u, 5u})
      for (const auto& weights :
        {std::vector<uint32_t>{1, 1, 1}, {1, 1, 2}, {5, 1, 3, 1, 1, 2}, {1}})
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          CAPTURE(std::string{text});
          CAPTURE(gpus);
          CAPTURE(seed);
          auto p = policy(text);
          backlog b{*p, weights, gpus, seed};
          b.run(2000);
          // drr: a quantum more.
          auto slack =
            std::string{text}.starts_with("drr") ? 1.0 * *std::ranges::max_element(weights) : 0;
          for (size_t i = 0; i < weights.size(); ++i) {
            CAPTURE(i);
            CHECK(std::abs(b.used_s[i] / b.total() - b.weight_share(i))
              <= ((gpus + 1) * longest_s + slack) / b.total());
          }
        }
}

TEST_CASE("with a half-life of minutes, max-min shares follow the weights within a few holds") {
  auto p = policy("maxmin(by=problem,half_life=10m)");
  backlog b{*p, {1, 2, 4}, 3};
  b.run(6000);
  for (size_t i = 0; i < 3; ++i)
    CHECK(std::abs(b.used_s[i] / b.total() - b.weight_share(i)) <= 8 * longest_s / b.total());
}

TEST_CASE("on one GPU two flows of stride never differ by more than a hold of each, by weight") {
  for (const auto& weights : {std::vector<uint32_t>{1, 1}, {1, 4}, {3, 2, 7}}) {
    auto p = policy("stride(by=problem)");
    backlog b{*p, weights, 1};
    b.run(3000, [&] {
      for (size_t f = 0; f < weights.size(); ++f)
        for (size_t m = 0; m < f; ++m)
          REQUIRE(std::abs(b.used_s[f] / weights[f] - b.used_s[m] / weights[m])
            <= longest_s / (1 + static_cast<double>(f % 3)) / weights[f]
              + longest_s / (1 + static_cast<double>(m % 3)) / weights[m] + 1e-6);
    });
  }
}

TEST_CASE("on one GPU two flows of drr differ by a quantum and a hold of each, by weight") {
  for (const auto& weights : {std::vector<uint32_t>{1, 1}, {1, 4}, {3, 2, 7}}) {
    auto p = policy("drr(by=problem,quantum=45s)");
    backlog b{*p, weights, 1};
    b.run(3000, [&] {
      for (size_t f = 0; f < weights.size(); ++f)
        for (size_t m = 0; m < f; ++m)
          REQUIRE(std::abs(b.used_s[f] / weights[f] - b.used_s[m] / weights[m])
            <= 45 + longest_s / weights[f] + longest_s / weights[m] + 1e-6);
    });
  }
}

TEST_CASE("round robin gives flows that always wait equal counts") {
  for (uint32_t gpus : {1u, 4u}) {
    auto p = policy("rr(by=problem)");
    backlog b{*p, {1, 5, 1, 1, 2}, gpus};
    b.run(1000, [&] {
      auto [least, most] = std::ranges::minmax_element(b.grants);
      REQUIRE(*most - *least <= 1);
    });
  }
}

TEST_CASE("counts of a lottery follow the weights within four standard deviations") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto p = policy(fmt::format("lottery(by=problem,seed={})", seed));
    backlog b{*p, {1, 1, 2, 6}, 2, seed};
    constexpr double draws = 4000;
    b.run(4000 - 2);
    for (size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      auto w = b.weight_share(i);
      CHECK(std::abs(static_cast<double>(b.grants[i]) / draws - w)
        <= 4 * std::sqrt(w * (1 - w) / draws));
    }
  }
}

TEST_CASE("an agent that leaves the queue between its leases gets its share of stride, not more") {
  // Two agents wait always, a third one only half of the time.
  auto p = policy("stride(by=agent)");
  std::map<std::string, double> used;
  std::map<uint64_t, std::string> of;
  uint64_t ticket = 0;
  auto ask = [&](const std::string& agent) {
    of[++ticket] = agent;
    p->on_request(make_waiter(ticket, "p", agent, any_need));
  };
  ask("x");
  ask("y");
  bool waits = false;
  for (int i = 0; i < 6000; ++i) {
    bool here = i / 100 % 2 == 0;
    if (here && !waits) {
      ask("z");
      waits = true;
    }
    auto agent = of[serve(*p, 10s)];
    used[agent] += 10;
    if (agent == "z")
      waits = false;
    else
      ask(agent);
  }
  // A third of half the time.
  CHECK(used["z"] == doctest::Approx(6000 * 10 / 2.0 / 3).epsilon(0.1));
}

TEST_CASE("a start that backfill has reserved is never missed") {
  uint64_t passed = 0;
  uint64_t promised = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed)
    for (uint32_t gpus : {1u, 3u}) {
      CAPTURE(seed);
      auto p = policy("backfill");
      uint64_t draw = 0;
      auto unit = [&] { return counter_unit(seed, 7, draw++); };
      struct lease {
        uint64_t ticket = 0;
        nanoseconds end{0};
        nanoseconds cap_end{0};
      };
      std::map<uint32_t, lease> running;
      std::map<uint64_t, waiter> waiting;
      std::map<uint64_t, nanoseconds> promise;
      uint64_t ticket = 0;
      nanoseconds now{0};
      nanoseconds next_arrival{0};
      // What the policy must promise: when the oldest waiter is a profile, the first end by cap.
      auto note = [&] {
        if (waiting.empty() || waiting.begin()->second.what != lease_class::profile
          || running.size() < gpus)
          return;
        nanoseconds first = nanoseconds::max();
        for (const auto& [gpu, l] : running)
          first = std::min(first, l.cap_end);
        promise.try_emplace(waiting.begin()->first, first);
      };
      for (int step = 0; step < 400; ++step) {
        nanoseconds first_end = nanoseconds::max();
        uint32_t ending = 0;
        for (const auto& [gpu, l] : running)
          if (l.end < first_end)
            std::tie(first_end, ending) = std::pair{l.end, gpu};
        if (next_arrival <= first_end) {
          now = next_arrival;
          next_arrival += nanoseconds{static_cast<int64_t>(unit() * 60e9 / gpus)};
          auto w = make_waiter(++ticket, "p", "a", any_need);
          bool is_long = unit() < 0.2;
          w.what = is_long ? lease_class::profile : lease_class::timing;
          w.cap = is_long ? 300s : std::chrono::seconds{5 + static_cast<int>(unit() * 115)};
          w.arrived = now;
          waiting[ticket] = w;
          p->on_request(w);
        } else {
          now = first_end;
          auto l = running.extract(ending).mapped();
          p->on_release({l.ticket, ending, 1s}, "done", now);
        }
        note();
        for (uint32_t gpu = 0; gpu < gpus && !waiting.empty(); ++gpu) {
          if (running.contains(gpu))
            continue;
          auto chosen = *p->pick({gpu, 1}, now);
          auto w = waiting.extract(chosen).mapped();
          p->on_grant(chosen, gpu, now);
          if (!waiting.empty() && waiting.begin()->first < chosen)
            ++passed;
          if (auto it = promise.find(chosen); it != promise.end()) {
            ++promised;
            REQUIRE(now <= it->second);
          }
          auto held = nanoseconds{
            1 + static_cast<int64_t>(unit() * unit() * static_cast<double>(w.cap.count() - 1))};
          if (unit() < 0.1)
            held = w.cap;
          running[gpu] = {chosen, now + held, now + w.cap};
          note();
        }
      }
    }
  // The test would prove nothing if nobody had been promised a start, or nobody had gone by.
  CHECK(promised > 500);
  CHECK(passed > 500);
}

TEST_CASE("the closed queue keeps Little's law, and equal agents share equally") {
  closed_queue model;
  model.agents = 60;
  model.gpus = 5;
  model.sigma = 0;
  model.measured = 12h;
  for (const char* text : {"fifo", "stride(by=agent)", "sept(ageing=0.2)"}) {
    CAPTURE(std::string{text});
    auto r = simulate(model, *policy(text));
    CHECK(r.utilisation == doctest::Approx(1).epsilon(0.001));
    CHECK(r.leases_per_s == doctest::Approx(5.0 / 24).epsilon(0.05));
    // N = X (Z + W + S).
    CHECK(r.leases_per_s * (85 + r.mean_wait_s + 24) == doctest::Approx(60).epsilon(0.02));
    CHECK(r.jain > 0.99);
  }
}

TEST_CASE(
  "300 agents on 27 GPUs: seconds-fair policies deliver more than fifo; sept starves, ageing "
  "does not") {
  // The published case, cut to six hours and one seed; bench/lease_policies.cpp has all of it.
  closed_queue model;
  model.warm_up = 1h;
  model.measured = 6h;
  std::map<std::string, closed_queue_result> r;
  for (const char* text : {"fifo", "stride(by=agent)", "las(by=agent)", "sept", "sept(ageing=0.2)"})
    r[text] = simulate(model, *policy(text));
  CHECK(r["fifo"].leases_per_s < 0.8 * r["stride(by=agent)"].leases_per_s);
  CHECK(r["stride(by=agent)"].leases_per_s < r["las(by=agent)"].leases_per_s);
  CHECK(r["las(by=agent)"].leases_per_s < r["sept"].leases_per_s);
  CHECK(r["fifo"].jain < 0.65);
  CHECK(r["stride(by=agent)"].jain > 0.8);
  CHECK(r["las(by=agent)"].jain > 0.85);
  CHECK(r["sept"].starved >= 30);
  for (const char* text : {"fifo", "stride(by=agent)", "sept(ageing=0.2)"})
    CHECK(r[text].starved == 0);
  for (const auto& [text, result] : r) {
    CAPTURE(std::string{text});
    CHECK(result.utilisation > 0.999);
  }
}
