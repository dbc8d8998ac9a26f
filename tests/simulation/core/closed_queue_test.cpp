#include "tests/simulation/core/lab_scenarios.hpp"

#include <cmath>

using namespace gristmill;

namespace {

struct exact_queue {
  double throughput = 0;
  double wait = 0;
};

/// M/M/c//N by its product form.
exact_queue exact(uint32_t agents, uint32_t gpus, double think, double hold) {
  std::vector<double> p(agents + 1);
  p[0] = 1;
  for (uint32_t n = 1; n <= agents; ++n)
    p[n] = p[n - 1] * (agents - n + 1) / think * hold / std::min(n, gpus);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  exact_queue out;
  double queue = 0;
  for (uint32_t n = 0; n <= agents; ++n) {
    out.throughput += std::min(n, gpus) * p[n] / sum / hold;
    queue += (n > gpus ? n - gpus : 0) * p[n] / sum;
  }
  out.wait = queue / out.throughput;
  return out;
}

} // namespace

TEST_CASE("a closed queue has the throughput and the waits of its closed form") {
  for (auto [agents, gpus] : {std::pair{5u, 1u}, {20u, 4u}, {40u, 4u}}) {
    CAPTURE(agents);
    double throughput = 0;
    double wait = 0;
    constexpr int seeds = 8;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const auto r = run_or_fail(closed_scenario(agents, gpus, 4), seed);
      throughput += r.throughput() / seeds;
      wait += r.waits.mean_s() / seeds;
    }
    const auto should = exact(agents, gpus, 85, 24);
    CHECK(throughput == doctest::Approx(should.throughput).epsilon(0.01));
    CHECK(wait == doctest::Approx(should.wait).epsilon(0.04));
  }
}

TEST_CASE("Little's law, the utilisation law and the response law hold exactly") {
  for (const auto& what : {closed_scenario(20, 4), busy_scenario()}) {
    const auto r = run_or_fail(what, 3);
    CAPTURE(what.name);
    REQUIRE(r.ended > 1000);
    const auto same = [](double a, double b) { return std::fabs(a - b) <= 1e-9 * std::fabs(b); };
    CHECK(same(r.queue_area, r.waited_s));
    CHECK(same(r.system_area, r.waited_s + r.held_s));
    CHECK(same(r.waited_s + r.held_s + r.thought_s, r.agents * r.measured_s));
    // What GPUs were leased for is what agents held.
    CHECK(same(r.utilisation() * r.gpus * r.measured_s, r.held_s));
    CHECK(r.throughput() <= r.gpus / 24.0 * 1.5);
    double held = 0;
    for (const auto& share : r.shares)
      held += share.held_s;
    CHECK(same(held, r.held_s));
  }
}

TEST_CASE("the states of all GPUs add up to the measured time") {
  for (const auto& what : {closed_scenario(3, 6), busy_scenario()}) {
    const auto r = run_or_fail(what, 2);
    CHECK(std::fabs(total_gpu_s(r) - r.gpus * r.measured_s) < 1e-6);
  }
  const auto busy = run_or_fail(busy_scenario(), 2);
  for (auto state : {gpu_time::useful, gpu_time::launch, gpu_time::wasted, gpu_time::verify,
         gpu_time::down, gpu_time::free}) {
    CAPTURE(to_string(state));
    CHECK(gpu_share(busy, state) > 0);
  }
  CHECK(gpu_share(busy, gpu_time::compile) == 0);
  auto on_lease = busy_scenario();
  on_lease.compile.on_lease = true;
  CHECK(gpu_share(run_or_fail(on_lease), gpu_time::compile) > 0);
}

TEST_CASE("equal seeds give equal results, others do not") {
  const auto what = busy_scenario();
  const auto a = run_or_fail(what, 5);
  const auto b = run_or_fail(what, 5);
  CHECK(a.digest == b.digest);
  CHECK(a.digest.size() == 16);
  CHECK(a.transitions == b.transitions);
  CHECK(a.gpu_s == b.gpu_s);
  CHECK(a.end()->geomean == b.end()->geomean);
  CHECK(a.waits.cumulative() == b.waits.cumulative());
  CHECK(run_or_fail(what, 6).digest != a.digest);
}

TEST_CASE("no capacity and much of it: 0 agents, 1 agent, more GPUs than agents") {
  const auto nobody = run_or_fail(closed_scenario(0, 2));
  CHECK(nobody.requests == 0);
  CHECK(nobody.utilisation() == 0);
  CHECK(nobody.jain_seconds == 1);
  CHECK(total_gpu_s(nobody) == doctest::Approx(2 * nobody.measured_s));

  const auto one = run_or_fail(closed_scenario(1, 1, 8));
  CHECK(one.waits.max_s() == 0);
  CHECK(one.throughput() == doctest::Approx(1 / (85.0 + 24)).epsilon(0.05));

  const auto many = run_or_fail(closed_scenario(3, 9));
  CHECK(many.waits.max_s() == 0);
  CHECK(many.waits.count() == many.grants);
}

TEST_CASE("FIFO equals counts, stride equals seconds, where holds differ between agents") {
  auto what = closed_scenario(30, 2, 4);
  what.hold.agent_sigma = 1;
  const auto fifo = run_or_fail(what);
  what.lease_policy = "stride";
  const auto stride = run_or_fail(what);
  CHECK(fifo.jain_counts > 0.99);
  CHECK(fifo.jain_seconds < stride.jain_seconds);
  CHECK(stride.throughput() > fifo.throughput());
}

TEST_CASE("a request that waits longer than its patience is given up, and asked again later") {
  auto what = closed_scenario(40, 1);
  what.patience_s = 100;
  const auto r = run_or_fail(what);
  CHECK(r.given_up > 100);
  CHECK(r.waits.max_s() <= 100.001);
  CHECK(r.requests == doctest::Approx(static_cast<double>(r.grants + r.given_up)).epsilon(0.05));
  CHECK(r.starved == 0);
  // Without the patience nobody gives up; without GPUs enough all starve.
  what.patience_s = 86'400;
  what.agents.front().count = 400;
  const auto long_waits = run_or_fail(what);
  CHECK(long_waits.given_up == 0);
  CHECK(long_waits.starved > 300);
  CHECK(long_waits.waiting_at_end_s > 3600);
}

TEST_CASE("who cannot be served is told why before anything runs") {
  const auto refused = [](const scenario& what, const std::string& part) {
    const auto r = run_core(what, {});
    REQUIRE_FALSE(r.has_value());
    CAPTURE(r.error().what);
    CHECK(r.error().code == errc::invalid_input);
    CHECK(r.error().what.find(part) != std::string::npos);
  };
  auto what = closed_scenario(2, 0);
  refused(what, "gpus.count");
  what = closed_scenario(2, 1);
  what.agents.front().need = "h100";
  refused(what, "no GPU of the scenario satisfies 'h100'; there are: b200");
  what = closed_scenario(20'000, 1);
  refused(what, "16382");
  what = closed_scenario(2, 1);
  what.lease_policy = "fifi";
  refused(what, "lease_policy");
  what = closed_scenario(2, 1);
  what.problems = 2;
  what.planner = "equall";
  refused(what, "planner");
  what.planner = "equal";
  what.warm_up_s = what.duration_s;
  refused(what, "warm_up");
}

TEST_CASE("a run can be stopped, and tells how far it is") {
  lab_options options;
  double last = 0;
  options.progress = [&](double share) {
    CHECK(share >= last);
    CHECK(share <= 1);
    last = share;
  };
  REQUIRE(run_core(closed_scenario(40, 4, 8), std::move(options)).has_value());
  CHECK(last > 0.5);
  lab_options stopped;
  stopped.stop = [] { return true; };
  const auto r = run_core(closed_scenario(40, 4, 8), std::move(stopped));
  REQUIRE_FALSE(r.has_value());
  CHECK(r.error().code == errc::shutting_down);
}
