#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/least_remaining.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// Mean hold of all that follow, in seconds.
constexpr double hold = 10;

service_law service_of(const load_case& of) {
  return of.cv2 > 1 ? hyperexponential_service(hold, of.cv2) : exponential_service(hold);
}

// `sept` with estimates that are exact.
void add_shortest_first(std::vector<check>& out, const std::vector<load_case>& cases) {
  check made;
  made.name = "shortest-first";
  made.what = "M/G/1 under sept with exact estimates, mean hold 10 s";
  made.source = "Phipps 1956; Conway, Maxwell, Miller 8-4";
  std::vector<scenario> all;
  for (const auto& each : cases) {
    auto of = open_scenario("shortest first", 1, each.load, law_of(hold, each.cv2), each.jobs);
    of.lease_policy = "sept";
    of.estimate = hold_estimate::exact;
    made.config += canonical_toml(of);
    all.push_back(std::move(of));
    made.lines.push_back({wait_line(each), shortest_first_wait(each.load, service_of(each))});
  }
  made.run = run_each(std::move(all), [](const lab_result& run) { return run.waits.mean_s(); });
  out.push_back(std::move(made));
}

void add_least_remaining(std::vector<check>& out, const std::vector<load_case>& cases) {
  check made;
  made.name = "least-remaining";
  made.what =
    "M/M/1, least remaining first, interrupting: the bound's own simulation, no lease table";
  made.source = "Schrage and Miller 1966";
  for (const auto& each : cases) {
    made.config += fmt::format("{} {} {}\n", each.load, each.cv2, each.jobs);
    made.lines.push_back(
      {fmt::format("mean response, s: load {}, {:.0f} jobs", each.load, each.jobs),
        least_remaining_response(each.load, service_of(each))});
  }
  made.run = [cases](uint64_t seed, mutant_kind) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& each : cases) {
      const double warm_up = 0.05 * each.jobs;
      const auto jobs = draw_jobs(
        law_of(hold, each.cv2), each.load / hold, static_cast<uint32_t>(each.jobs + warm_up), seed);
      one.values.push_back(least_remaining_mean(jobs, static_cast<size_t>(warm_up)));
    }
    return one;
  };
  out.push_back(std::move(made));
}

// The same jobs through the lease table: whatever the policy, and however small the leases that
// they are cut into, nobody is faster on the mean than least remaining first.
void add_least_remaining_bound(std::vector<check>& out, uint32_t count) {
  struct bound_case {
    std::string policy;
    double piece_s;
  };
  const std::vector<bound_case> cases = {{"fifo", 0}, {"sept", 0}, {"sept", 2.5}, {"rr", 2.5}};
  constexpr double load = 0.8;
  constexpr uint32_t lanes = 2000;
  check made;
  made.name = "least-remaining-bound";
  made.what = fmt::format(
    "M/M/1 at load {}, {} jobs: response of least remaining first / of the policy", load, count);
  made.source = "Schrage 1968";
  for (const auto& each : cases)
    made.lines.push_back({each.policy
        + (each.piece_s > 0 ? fmt::format(", leases of {} s", each.piece_s)
                            : std::string(", one lease a job")),
      1, line_rule::at_most});
  made.config = fmt::format("{} {} {}\n", load, count, lanes);
  for (const auto& line : made.lines)
    made.config += line.name + "\n";
  made.run = [cases, count](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    const auto jobs = draw_jobs(exponential_law(hold), load / hold, count, seed);
    const double bound = least_remaining_mean(jobs);
    double arrived_s = 0;
    for (const auto& job : jobs)
      arrived_s += seconds_of(job.arrived);
    seed_outcome one;
    for (const auto& each : cases) {
      // Long enough that the last has gone.
      auto of = bare_scenario("least remaining", 1, count * hold / load * 1.2 + 10'000, 0);
      of.lease_policy = each.policy;
      queue_watch watch(1, std::chrono::nanoseconds{0});
      lab_options options;
      options.world.recorded = as_agents(jobs, lanes, time_of(each.piece_s));
      auto run = run_scenario(of, seed, mutant, std::move(options), &watch);
      if (!run)
        return pass(run);
      if (watch.of(lease_class::profile).grants != count)
        return fail(errc::refused,
          fmt::format(
            "{} of {} jobs got their last lease", watch.of(lease_class::profile).grants, count));
      one.values.push_back(bound / ((watch.ends_s(lease_class::profile) - arrived_s) / count));
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

// Jobs of a geometric number of exponential leases, under policies that look at everything but how
// long a job still is. What is left of a job at the end of a lease is distributed as the whole job
// was, so the number of jobs is that of M/M/1 exactly, however small or large the leases are.
void add_size_blind(std::vector<check>& out, const std::vector<load_case>& cases) {
  constexpr double leases = 2;
  const std::vector<std::string> policies = {"fifo", "rr(by=agent)", "las(by=agent)"};
  check made;
  made.name = "size-blind";
  made.what = "M/M/1, jobs of 2 leases of 5 s in the mean, served in turn";
  made.source = "S/(1 - r); Kleinrock II 4.4, 4.6";
  std::vector<scenario> all;
  for (const auto& each : cases)
    for (const auto& policy : policies) {
      auto of = open_scenario(
        "size blind", 1, each.load, exponential_law(hold / leases), each.jobs * leases);
      of.arrivals.rate = each.load / hold;
      of.arrivals.leases_mean = leases;
      of.lease_policy = policy;
      made.config += canonical_toml(of);
      all.push_back(std::move(of));
      made.lines.push_back(
        {fmt::format("mean response, s: load {}, {}, {:.0f} jobs", each.load, policy, each.jobs),
          exponential_response(each.load, hold)});
    }
  made.run = run_each(std::move(all), [](const lab_result& run) { return run.responses.mean_s(); });
  out.push_back(std::move(made));
}

void add_priorities(std::vector<check>& out, double jobs) {
  // Different holds: a short urgent kind, a varied middle one, a long constant last one.
  const std::vector<job_kind> kinds = {{0.05, exponential_law(4), lease_class::correctness},
    {0.03, law_of(10, 2), lease_class::timing}, {0.015, law_of(20, 0), lease_class::profile}};
  const std::vector<priority_class> classes = {
    {0.05, 4, 2 * 16}, {0.03, 10, 3 * 100}, {0.015, 20, 400}};
  constexpr uint32_t lanes = 2000;
  const double rate = 0.05 + 0.03 + 0.015;
  check made;
  made.name = "priorities";
  made.what = fmt::format("M/G/1 at load 0.8, three classes under priority, {:.0f} jobs", jobs);
  made.source = "Cobham 1954";
  auto of = bare_scenario("priorities", 1, jobs * 1.05 / rate, jobs * 0.05 / rate);
  of.lease_policy = "priority(by=class,order=correctness>timing>profile)";
  made.config =
    canonical_toml(of) + fmt::format("{} lanes, 0.05 x 4, 0.03 x 10, 0.015 x 20\n", lanes);
  const auto exact = cobham_waits(classes);
  for (size_t i = 0; i < kinds.size(); ++i)
    made.lines.push_back({"mean wait, s: " + to_string(kinds[i].what), exact[i]});
  made.run = [of, kinds](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    queue_watch watch(1, time_of(of.warm_up_s));
    lab_options options;
    options.world.recorded = arriving_jobs(kinds, lanes, of.duration_s, seed);
    auto run = run_scenario(of, seed, mutant, std::move(options), &watch);
    if (!run)
      return pass(run);
    seed_outcome one;
    for (const auto& kind : kinds) {
      const auto& sums = watch.of(kind.what);
      one.values.push_back(seconds_of(sums.waited) / double(sums.measured));
    }
    count_run(one, *run);
    return one;
  };
  out.push_back(std::move(made));
}

void add_conservation(std::vector<check>& out, double jobs) {
  const std::vector<std::string> others = {
    "rr(by=agent)", "lottery(by=agent)", "las(by=agent)", "stride(by=agent)"};
  const double exact = open_queue(3, 0.8, hold).mean_wait();
  check made;
  made.name = "conservation";
  made.what = fmt::format("M/M/3 at load 0.8, {:.0f} jobs: 1 + (mean wait - fifo's)/exact", jobs);
  made.source = "size-blind orders share the mean wait";
  for (const auto& policy : others)
    made.lines.push_back({policy + " beside fifo, equal draws", 1});
  auto of = open_scenario("conservation", 3, 0.8, exponential_law(hold), jobs);
  made.config = canonical_toml(of) + fmt::format("{}\n", fmt::join(others, " "));
  made.run = [of, others, exact](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    auto first = run_scenario(of, seed, mutant);
    if (!first)
      return pass(first);
    count_run(one, *first);
    for (const auto& policy : others) {
      auto changed = of;
      changed.lease_policy = policy;
      auto run = run_scenario(changed, seed, mutant);
      if (!run)
        return pass(run);
      one.values.push_back(1 + (run->waits.mean_s() - first->waits.mean_s()) / exact);
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

} // namespace

void add_order_checks(std::vector<check>& out, bool quick) {
  if (quick) {
    add_shortest_first(out, {{0.5, 1, 40'000}});
    add_least_remaining(out, {{0.5, 1, 50'000}});
    add_least_remaining_bound(out, 500);
    return;
  }
  add_shortest_first(
    out, {{0.5, 1, 100'000}, {0.8, 1, 200'000}, {0.9, 1, 500'000}, {0.8, 4, 500'000}});
  add_least_remaining(
    out, {{0.5, 1, 200'000}, {0.7, 1, 300'000}, {0.8, 1, 400'000}, {0.9, 1, 600'000}});
  add_least_remaining_bound(out, 5000);
  add_size_blind(out, {{0.5, 1, 20'000}, {0.7, 1, 60'000}, {0.8, 1, 150'000}});
  add_priorities(out, 200'000);
  add_conservation(out, 200'000);
}

} // namespace gristmill
