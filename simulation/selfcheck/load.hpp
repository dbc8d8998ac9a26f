#pragma once

#include "simulation/core/world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// Jobs of one kind that come by chance, one lease each.
struct job_kind {
  /// A second, Poisson.
  double rate = 0;
  time_law service;
  lease_class what = lease_class::timing;
};

/// Arrivals of all kinds up to `until_s`, as recorded agents: a job is one lease with its exact
/// hold as the estimate. Each kind has `lanes` agents that take its jobs in turn, so a job is
/// late only if one that came `lanes` jobs of its kind earlier is not over yet.
std::vector<recorded_agent> arriving_jobs(
  const std::vector<job_kind>& kinds, uint32_t lanes, double until_s, uint64_t seed);

/// The arrival of a job and how much work it is.
struct job_size {
  std::chrono::nanoseconds arrived{0};
  std::chrono::nanoseconds work{0};
};

/// `count` Poisson arrivals at `rate` with services of `law`.
std::vector<job_size> draw_jobs(const time_law& law, double rate, uint32_t count, uint64_t seed);

/// These jobs as recorded agents, in `lanes` lanes as above, each cut into leases of `piece` (0:
/// one lease each). A lease's estimate is all the work that its job has left; the last lease of a
/// job is of class `profile`, the others are `timing`.
std::vector<recorded_agent> as_agents(
  const std::vector<job_size>& jobs, uint32_t lanes, std::chrono::nanoseconds piece);

/// Flows that always have somebody waiting until `until_s`: problems "a", "b", … with these
/// weights and `agents_each` agents, who ask again as soon as a lease is over. Holds are drawn by
/// `law`; the estimate is the law's mean.
std::vector<recorded_agent> backlogged_flows(const std::vector<uint32_t>& weights,
  uint32_t agents_each, const time_law& law, double until_s, uint64_t seed);

} // namespace gristmill
