#pragma once

#include "simulation/core/engine.hpp"

#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

namespace gristmill {

/// A closed queue: exponential thinking and holds, nothing else.
inline scenario closed_scenario(uint32_t agents, uint32_t gpus, double days = 1) {
  scenario out;
  out.name = "closed";
  out.duration_s = days * 86'400;
  out.warm_up_s = 3600;
  out.gpus.push_back({"gpu", "b200", gpus, 1, 4});
  agent_group group;
  group.count = agents;
  out.agents.push_back(group);
  out.think.call = {draw_kind::exponential, 85, 0, 1, 0};
  out.hold.time = {draw_kind::exponential, 24, 0, 1, 0};
  out.caps_s.fill(1e6);
  out.lease_policy = "fifo";
  return out;
}

/// Everything at once: problems, compilers, hangs, faults, incidents, two kinds of agents and GPUs.
inline scenario busy_scenario(double days = 0.5) {
  auto out = closed_scenario(16, 3, days);
  out.name = "busy";
  out.gpus.push_back({"old", "h200", 2, 0.5, 0});
  agent_group other;
  other.name = "other";
  other.count = 4;
  other.what = lease_class::correctness;
  other.weight = 2;
  other.need = "h200";
  other.hold_factor = 0.5;
  out.agents.push_back(other);
  out.caps_s = {60, 120, 300, 600, 600};
  out.think.calls_mean = 3;
  out.think.call = {draw_kind::lognormal, 20, 1, 1, 0};
  out.think.tail_chance = 0.05;
  out.think.tail_factor = 3;
  out.compile.time = {draw_kind::lognormal, 12, 0.7, 1, 60};
  out.compile.slots = 3;
  out.hold.time = {draw_kind::lognormal, 20, 0.5, 1, 50};
  out.hold.agent_sigma = 0.5;
  out.hold.launch_s = 0.5;
  out.hold.verify_s = 0.25;
  out.fate = {0.02, 7, 0.05};
  out.problems = 6;
  out.outcome.leases = 500;
  out.lease_policy = "stride";
  out.incidents.push_back({incident_kind::gpu_down, 10'000, 900, "gpu#1", 1});
  out.incidents.push_back({incident_kind::node_down, 20'000, 600, "old-0", 1});
  out.incidents.push_back({incident_kind::model_outage, 25'000, 700, "", 1});
  out.incidents.push_back({incident_kind::rate_limit, 30'000, 2000, "", 0.3});
  out.chance_incidents.push_back({incident_kind::gpu_down, 20'000, 300, 1});
  return out;
}

inline lab_result run_or_fail(const scenario& what, uint64_t seed = 1) {
  lab_options options;
  options.world.seed = seed;
  auto out = run_core(what, std::move(options));
  REQUIRE_MESSAGE(out.has_value(), (out ? std::string{} : out.error().what));
  return std::move(*out);
}

inline double total_gpu_s(const lab_result& result) {
  return std::accumulate(result.gpu_s.begin(), result.gpu_s.end(), 0.0);
}

inline double gpu_share(const lab_result& result, gpu_time state) {
  return result.gpu_s[static_cast<size_t>(state)];
}

} // namespace gristmill
