// Measures the lease policies and prints two tables:
//
//     build/release/bench/gristmill-bench-lease-policies [speed|shares [SEEDS [POLICY...]]]
//
// `speed`: what pick() costs with 1,000 and with 10,000 waiters, and apart from it the on_request,
// on_grant and on_release around it. `shares`: 300 agents, 27 GPUs, 66 hours of them (and 6 before
// that are not counted) under each policy, by the model of tests/support/closed_queue.hpp.

#include "gpu/lease/policy.hpp"
#include "tests/support/closed_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace gristmill;
using std::chrono::nanoseconds;
using clock_type = std::chrono::steady_clock;

waiter make_waiter(uint64_t ticket, nanoseconds now) {
  waiter w;
  w.ticket = ticket;
  auto draw = test::counter_word(1, 0, ticket);
  w.what = static_cast<lease_class>(draw % 3);
  w.flow.problem = fmt::format("problem-{:03}", draw / 3 % 235);
  w.flow.agent = fmt::format("agent-{:04}", draw / 1000 % 500);
  w.weight = 1 + static_cast<uint32_t>(draw / 1'000'000 % 4);
  w.need = static_cast<need_id>(draw / 10'000'000 % 3);
  w.est_hold = nanoseconds{1'000'000'000 + static_cast<int64_t>(draw % 60'000'000'000)};
  w.cap = std::chrono::seconds{w.what == lease_class::profile ? 300 : 120};
  w.arrived = now;
  w.deadline = now + std::chrono::hours{1};
  return w;
}

struct costs {
  std::vector<double> pick_ns;
  std::vector<double> around_ns;

  static double at(std::vector<double>& sorted, double share) {
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
};

costs measure(const std::string& text, uint64_t waiters) {
  auto policy = std::move(*policy_from_text(text));
  std::map<uint32_t, uint64_t> running;
  costs out;
  uint64_t ticket = 0;
  nanoseconds now{0};
  auto timed = [](std::vector<double>& into, auto&& work) {
    auto from = clock_type::now();
    work();
    into.push_back(std::chrono::duration<double, std::nano>(clock_type::now() - from).count());
  };
  while (ticket < waiters)
    policy->on_request(make_waiter(++ticket, now));
  for (int i = 0; i < 20'000; ++i) {
    now += std::chrono::milliseconds{900};
    auto gpu = static_cast<uint32_t>(i % 27);
    if (auto it = running.find(gpu); it != running.end()) {
      lease_usage usage{it->second, gpu,
        nanoseconds{static_cast<int64_t>(test::counter_word(2, 0, ticket) % 60'000'000'000)}};
      timed(out.around_ns, [&] { policy->on_release(usage, "done", now); });
    }
    std::optional<uint64_t> chosen;
    // Half the GPUs have the one special need, half the other.
    gpu_offer offer{gpu, gpu % 2 == 0 ? need_set{0b011} : need_set{0b101}};
    timed(out.pick_ns, [&] { chosen = policy->pick(offer, now); });
    timed(out.around_ns, [&] { policy->on_grant(*chosen, gpu, now); });
    running[gpu] = *chosen;
    auto w = make_waiter(++ticket, now);
    timed(out.around_ns, [&] { policy->on_request(w); });
  }
  return out;
}

void print_speed(const std::vector<std::string>& policies) {
  std::printf("%-58s %8s %23s %23s\n", "", "", "pick() us", "each other call us");
  std::printf("%-58s %8s %7s %7s %7s %7s %7s %7s\n", "policy", "waiters", "p50", "p99", "mean",
    "p50", "p99", "mean");
  for (const auto& text : policies)
    for (uint64_t waiters : {1'000, 10'000}) {
      auto c = measure(text, waiters);
      auto mean = [](const std::vector<double>& v) {
        double sum = 0;
        for (double x : v)
          sum += x;
        return sum / static_cast<double>(v.size());
      };
      std::printf("%-58s %8llu %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f\n", text.c_str(),
        static_cast<unsigned long long>(waiters), costs::at(c.pick_ns, 0.5) / 1e3,
        costs::at(c.pick_ns, 0.99) / 1e3, mean(c.pick_ns) / 1e3, costs::at(c.around_ns, 0.5) / 1e3,
        costs::at(c.around_ns, 0.99) / 1e3, mean(c.around_ns) / 1e3);
    }
}

struct spread {
  double mean = 0;
  /// Half the 95 % interval of the mean (normal).
  double half = 0;
};

spread of(const std::vector<double>& values) {
  spread out;
  for (double v : values)
    out.mean += v / static_cast<double>(values.size());
  double squares = 0;
  for (double v : values)
    squares += (v - out.mean) * (v - out.mean);
  if (values.size() > 1)
    out.half = 1.96
      * std::sqrt(
        squares / static_cast<double>(values.size() - 1) / static_cast<double>(values.size()));
  return out;
}

void print_shares(uint64_t seeds, const std::vector<std::string>& policies, const char* variant) {
  std::printf("300 agents, 27 GPUs, think 85 s, hold 24 s (agent means lognormal, sigma 1), 66 h, "
              "seeds 1 to %llu, variant '%s'; ± is the 95 %% interval of the mean\n",
    static_cast<unsigned long long>(seeds), variant);
  std::printf("%-40s %15s %15s %15s %18s %12s\n", "policy", "leases/s", "Jain", "starved of 300",
    "longest wait h", "mean wait s");
  for (const auto& text : policies) {
    std::vector<double> rate;
    std::vector<double> jain;
    std::vector<double> starved;
    std::vector<double> longest;
    std::vector<double> wait;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      test::closed_queue model;
      model.seed = seed;
      std::string v = variant;
      model.exponential_hold = v.find("fixed") == std::string::npos;
      model.estimate_is_mean = v.find("exact") == std::string::npos;
      auto policy = std::move(*policy_from_text(text));
      auto r = simulate(model, *policy);
      rate.push_back(r.leases_per_s);
      jain.push_back(r.jain);
      starved.push_back(r.starved);
      longest.push_back(r.longest_wait_s / 3600);
      wait.push_back(r.mean_wait_s);
    }
    std::printf("%-40s %7.3f ± %5.3f %7.3f ± %5.3f %7.1f ± %5.1f %9.2f ± %6.2f %12.1f\n",
      text.c_str(), of(rate).mean, of(rate).half, of(jain).mean, of(jain).half, of(starved).mean,
      of(starved).half, of(longest).mean, of(longest).half, of(wait).mean);
    std::fflush(stdout);
  }
}

} // namespace

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  uint64_t seeds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20;
  std::vector<std::string> policies;
  for (int i = 3; i < argc; ++i)
    policies.push_back(argv[i]);
  for (const auto& text : policies)
    if (auto p = policy_from_text(text); !p) {
      std::fprintf(stderr, "%s\n", p.error().what.c_str());
      return 2;
    }
  if (what.empty() || what == "speed")
    print_speed(!policies.empty()
        ? policies
        : std::vector<std::string>{"fifo", "sept", "sept(ageing=0.2)", "edf", "backfill",
          "rr(by=agent)", "drr(by=agent)", "stride(by=agent)", "stride", "lottery(by=agent)",
          "las(by=agent)", "maxmin(by=agent)", "priority", "priority(ageing=60s)",
          "priority(by=class)/stride(by=problem)/stride(by=agent)/fifo"});
  if (what.empty() || what.starts_with("shares"))
    print_shares(seeds,
      !policies.empty() ? policies
                        : std::vector<std::string>{"fifo", "rr(by=agent)", "lottery(by=agent)",
                          "drr(by=agent)", "stride(by=agent)", "maxmin(by=agent)", "las(by=agent)",
                          "sept", "sept(ageing=0.1)", "sept(ageing=0.2)", "sept(ageing=0.5)"},
      what.find('=') == std::string::npos ? "exponential" : what.c_str() + what.find('=') + 1);
  return 0;
}
