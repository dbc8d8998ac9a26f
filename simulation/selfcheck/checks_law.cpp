#include "simulation/scenario_file.hpp"
#include "simulation/selfcheck/formulas.hpp"
#include "simulation/selfcheck/runs.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr double hour = 3600;

/// How far two sides of an identity may differ: sums of millions of times in nanoseconds, added up
/// as doubles in different orders.
constexpr double identity = 1e-9;

double apart(double a, double b) {
  const double size = std::max(std::fabs(a), std::fabs(b));
  return size == 0 ? 0 : std::fabs(a - b) / size;
}

struct law_case {
  std::string name;
  scenario of;
};

/// Everything that can happen to a lease, under several policies: no formula knows what comes of
/// it, but the books must agree.
std::vector<law_case> busy_cases(double hours) {
  std::vector<law_case> out;
  auto plain = closed_scenario("plain", 60, 6, 85, 24, hours * hour, hour);
  out.push_back({"plain, fifo", plain});
  auto busy = plain;
  busy.name = "busy";
  busy.lease_policy = "stride";
  busy.think.calls_mean = 7.4;
  busy.think.call = {draw_kind::lognormal, 11.5, 1.15, 1, 0};
  busy.think.tail_chance = 0.02;
  busy.think.tail_factor = 5;
  busy.compile.time = {draw_kind::lognormal, 25, 0.7, 1, 120};
  busy.compile.slots = 8;
  busy.hold.time = {draw_kind::lognormal, 24, 1, 1, 90};
  busy.hold.agent_sigma = 1;
  busy.hold.launch_s = 0.2;
  busy.hold.verify_s = 0.3;
  busy.fate = {0.005, 10, 0.01};
  busy.estimate = hold_estimate::mean;
  busy.caps_s = {120, 120, 300, 600, 600};
  busy.problems = 20;
  out.push_back({"everything, stride", busy});
  busy.compile.on_lease = true;
  busy.lease_policy = "sept(ageing=0.2)";
  out.push_back({"compile on lease, sept with ageing", busy});
  busy.lease_policy = "las(by=agent)";
  busy.incidents = {{incident_kind::gpu_down, 2 * hour, hour, "gpu#0", 1},
    {incident_kind::model_outage, 3 * hour, 0.5 * hour, "", 1}};
  out.push_back({"a GPU and the model are gone for a while, las", busy});
  return out;
}

void add_identities(std::vector<check>& out, double hours) {
  const auto cases = busy_cases(hours);
  check made;
  made.name = "identities";
  made.what =
    fmt::format("60 agents, 6 GPUs, {} h: both sides of each identity, relative difference", hours);
  made.source = "Little 1961; Denning and Buzen 1978";
  for (const auto& each : cases) {
    made.config += canonical_toml(each.of);
    for (const char* what : {"queue area = all waits", "system area = waits + holds",
           "GPU states = GPUs x time", "GPU time not free = holds + GPUs down",
           "waits + holds + thinking = agents x time", "queue area = what the policy saw"})
      made.lines.push_back({each.name + ": " + what, identity, line_rule::at_most});
  }
  made.run = [cases](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& each : cases) {
      queue_watch watch(6, time_of(each.of.warm_up_s));
      auto run = run_scenario(each.of, seed, mutant, {}, &watch);
      if (!run)
        return pass(run);
      const auto state = [&](gpu_time what) { return run->gpu_s.at(static_cast<size_t>(what)); };
      double all = 0;
      for (const double s : run->gpu_s)
        all += s;
      one.values.push_back(apart(run->queue_area, run->waited_s));
      one.values.push_back(apart(run->system_area, run->waited_s + run->held_s));
      one.values.push_back(apart(all, run->gpus * run->measured_s));
      one.values.push_back(apart(all - state(gpu_time::free), run->held_s + state(gpu_time::down)));
      one.values.push_back(
        apart(run->waited_s + run->held_s + run->thought_s, run->agents * run->measured_s));
      one.values.push_back(apart(run->queue_area, watch.waiting_area_s()));
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

void add_work_conserving(std::vector<check>& out, double hours) {
  const std::vector<std::string> policies = {"fifo", "sept", "stride", "las(by=agent)",
    "drr(by=agent)", "lottery(by=agent)", "maxmin(by=agent)", "backfill", "edf", "rr(by=agent)",
    "priority"};
  auto of = closed_scenario("work conserving", 40, 5, 85, 12, hours * hour, 0);
  check made;
  made.name = "work-conserving";
  made.what = fmt::format(
    "40 agents, 5 GPUs, {} h: share of the GPU time that a GPU was free while somebody waited",
    hours);
  made.source = "definition";
  made.config = canonical_toml(of) + fmt::format("{}\n", fmt::join(policies, " "));
  for (const auto& policy : policies)
    made.lines.push_back({policy, 1e-6, line_rule::at_most});
  made.run = [of, policies](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& policy : policies) {
      auto changed = of;
      changed.lease_policy = policy;
      queue_watch watch(5, std::chrono::nanoseconds{0});
      auto run = run_scenario(changed, seed, mutant, {}, &watch);
      if (!run)
        return pass(run);
      one.values.push_back(watch.idle_s() / (5 * of.duration_s));
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

void add_bounds(std::vector<check>& out, double hours) {
  struct bound_case {
    std::string name;
    scenario of;
    double bound = 0;
    /// Nothing is drawn, so the bound holds for every seed, one lease at the edge apart.
    bool hard = false;
  };
  std::vector<bound_case> cases;
  for (const uint32_t agents : {60u, 123u, 300u})
    for (const char* law : {"constant", "lognormal", "hyperexponential"}) {
      auto of = closed_scenario("bounds", agents, 27, 85, 24, hours * hour, hour);
      of.lease_policy = agents == 300 ? "stride(by=agent)" : "fifo";
      const std::string name = law;
      if (name == "constant") {
        of.think.call.kind = draw_kind::constant;
        of.hold.time.kind = draw_kind::constant;
      } else if (name == "lognormal") {
        of.think.call.kind = draw_kind::lognormal;
        of.think.call.sigma = 1;
        of.hold.time.kind = draw_kind::lognormal;
        of.hold.time.sigma = 1;
      } else {
        of.hold.time.kind = draw_kind::hyperexponential;
        of.hold.time.cv2 = 4;
      }
      cases.push_back({fmt::format("{} agents, {}: X / bound", agents, law), of,
        throughput_bound(agents, 27, 85, 24), name == "constant"});
    }
  check made;
  made.name = "bounds";
  made.what = fmt::format("closed queues of any law, think 85 s, hold 24 s, {} h", hours);
  made.source = "min(c/S, N/(Z + S)), Denning and Buzen 1978";
  for (const auto& each : cases) {
    made.config += canonical_toml(each.of);
    made.lines.push_back({each.name, 1, each.hard ? line_rule::at_most : line_rule::mean_at_most});
    made.lines.push_back({each.name.substr(0, each.name.find(':')) + ": utilisation", 1 + identity,
      line_rule::at_most});
  }
  made.run = [cases](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    seed_outcome one;
    for (const auto& each : cases) {
      auto run = run_scenario(each.of, seed, mutant);
      if (!run)
        return pass(run);
      // Where nothing is drawn, an agent and a GPU may have one lease more than fits: that at the
      // edge.
      const double slack = each.hard ? each.of.agents.front().count / run->measured_s : 0;
      one.values.push_back(run->throughput() / (each.bound + slack));
      one.values.push_back(run->utilisation());
      count_run(one, *run);
    }
    return one;
  };
  out.push_back(std::move(made));
}

} // namespace

void add_law_checks(std::vector<check>& out, bool quick) {
  add_identities(out, quick ? 4 : 24);
  add_work_conserving(out, quick ? 1 : 12);
  if (!quick)
    add_bounds(out, 12);
}

} // namespace gristmill
