#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

namespace gristmill {

namespace {

constexpr double day = 86'400;

/// Waits so far apart are as good as independent (docs/selfcheck.md has the measured correlations).
constexpr uint64_t sample_every = 1000;

check closed_check(std::string name, std::string what, const scenario& of, const closed_queue& q) {
  check out;
  out.name = std::move(name);
  out.what = std::move(what);
  out.source = "M/M/c//N, Kleinrock I 3.8; arrival theorem";
  out.config = canonical_toml(of);
  out.lines = {{"leases/s", q.throughput()}, {"utilisation", q.utilisation()},
    {"mean wait, s", q.mean_wait()}, {"wait p50, s", q.wait_quantile(0.5)},
    {"wait p90, s", q.wait_quantile(0.9)}, {"wait p99, s", q.wait_quantile(0.99)},
    {"waits at all", q.waits_at_all()}};
  out.run = [of](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    lab_options options;
    uint64_t waits = 0;
    options.world.on_wait = [&](std::chrono::nanoseconds wait) {
      if (++waits % sample_every == 0)
        one.sample.push_back(seconds_of(wait) < no_wait_s ? 0 : seconds_of(wait));
    };
    auto run = run_scenario(of, seed, mutant, std::move(options));
    if (!run)
      return pass(run);
    one.values = {run->throughput(), run->utilisation(), run->waits.mean_s(),
      run->waits.quantile_s(0.5), run->waits.quantile_s(0.9), run->waits.quantile_s(0.99),
      1 - run->waits.share_up_to(no_wait_s)};
    count_run(one, *run);
    return one;
  };
  return out;
}

void add_flagship(std::vector<check>& out, double days) {
  const auto of = closed_scenario("closed queue", 300, 27, 300, 30, days * day, 0.25 * day);
  const closed_queue q(300, 27, 300, 30);
  auto made = closed_check("closed-queue",
    fmt::format("300 agents, 27 GPUs, think 300 s, hold 30 s, {} days", days), of, q);
  made.distribution = [q](double t) { return t < 0 ? 0 : 1 - q.wait_tail(t); };
  out.push_back(std::move(made));
}

void add_saturated(std::vector<check>& out, double days) {
  const auto of = closed_scenario("saturated queue", 300, 27, 85, 24, days * day, 0.05 * day);
  const closed_queue q(300, 27, 85, 24);
  auto made = closed_check("saturated-queue",
    fmt::format("300 agents, 27 GPUs, think 85 s, hold 24 s, {} days", days), of, q);
  out.push_back(std::move(made));
}

} // namespace

void add_closed_checks(std::vector<check>& out, bool quick) {
  if (!quick)
    add_flagship(out, 21);
  add_saturated(out, quick ? 0.5 : 7);
}

} // namespace gristmill
