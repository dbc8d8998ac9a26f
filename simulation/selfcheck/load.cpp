#include "simulation/selfcheck/load.hpp"

#include "simulation/model/time_sampler.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

/// Purposes of streams that nothing else draws from.
constexpr auto gaps = static_cast<stream_purpose>(201);
constexpr auto services = static_cast<stream_purpose>(202);
constexpr auto holds = static_cast<stream_purpose>(203);

} // namespace

std::vector<recorded_agent> arriving_jobs(
  const std::vector<job_kind>& kinds, uint32_t lanes, double until_s, uint64_t seed) {
  std::vector<recorded_agent> out(kinds.size() * lanes);
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    counter_stream gap(seed, stream_of(gaps, kind));
    counter_stream service(seed, stream_of(services, kind));
    const time_sampler sampler(kinds[kind].service);
    double now = 0;
    for (uint64_t job = 0;; ++job) {
      now += gap.exponential() / kinds[kind].rate;
      if (now >= until_s)
        break;
      recorded_lease lease;
      lease.absolute = true;
      lease.gap = time_of(now);
      lease.hold = std::max(time_of(sampler.draw(service)), nanoseconds{1});
      lease.estimate = lease.hold;
      lease.what = kinds[kind].what;
      out[kind * lanes + job % lanes].leases.push_back(std::move(lease));
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i].name = "lane-" + std::to_string(i);
  return out;
}

std::vector<job_size> draw_jobs(const time_law& law, double rate, uint32_t count, uint64_t seed) {
  counter_stream gap(seed, stream_of(gaps, 0));
  counter_stream service(seed, stream_of(services, 0));
  const time_sampler sampler(law);
  std::vector<job_size> out(count);
  double now = 0;
  for (auto& job : out) {
    now += gap.exponential() / rate;
    job.arrived = time_of(now);
    job.work = std::max(time_of(sampler.draw(service)), nanoseconds{1});
  }
  return out;
}

std::vector<recorded_agent> as_agents(
  const std::vector<job_size>& jobs, uint32_t lanes, nanoseconds piece) {
  std::vector<recorded_agent> out(lanes);
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto& agent = out[i % lanes];
    auto left = jobs[i].work;
    for (bool first = true; left > nanoseconds{0}; first = false) {
      recorded_lease lease;
      lease.absolute = first;
      lease.gap = first ? jobs[i].arrived : nanoseconds{0};
      lease.hold = piece > nanoseconds{0} ? std::min(piece, left) : left;
      lease.estimate = left;
      left -= lease.hold;
      lease.what = left > nanoseconds{0} ? lease_class::timing : lease_class::profile;
      agent.leases.push_back(std::move(lease));
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i].name = "lane-" + std::to_string(i);
  return out;
}

std::vector<recorded_agent> backlogged_flows(const std::vector<uint32_t>& weights,
  uint32_t agents_each, const time_law& law, double until_s, uint64_t seed) {
  std::vector<recorded_agent> out;
  const time_sampler sampler(law);
  for (size_t flow = 0; flow < weights.size(); ++flow) {
    const std::string problem(1, static_cast<char>('a' + flow));
    for (uint32_t i = 0; i < agents_each; ++i) {
      recorded_agent agent;
      agent.name = problem + std::to_string(i);
      agent.weight = weights[flow];
      counter_stream draws(seed, stream_of(holds, out.size()));
      // One agent never gets more than all of the time.
      for (double sum = 0; sum < until_s;) {
        recorded_lease lease;
        lease.problem = problem;
        const double hold = sampler.draw(draws);
        sum += hold;
        lease.hold = std::max(time_of(hold), nanoseconds{1});
        lease.estimate = time_of(law.mean_s);
        agent.leases.push_back(std::move(lease));
      }
      out.push_back(std::move(agent));
    }
  }
  return out;
}

} // namespace gristmill
