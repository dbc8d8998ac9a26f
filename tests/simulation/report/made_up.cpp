#include "tests/simulation/report/made_up.hpp"

#include <cmath>
#include <fmt/format.h>

namespace gristmill::test {

lab_result made_up_result(double level, uint64_t seed) {
  lab_result out;
  const double noise = static_cast<double>(seed * 7 % 5);
  out.digest = fmt::format("{:016x}", seed * 1000 + static_cast<uint64_t>(level * 10));
  out.transitions = 100 + seed;
  out.measured_s = 3600;
  out.gpus = 2;
  out.agents = 4;
  out.requests = out.grants = out.ended = 100;
  for (int i = 1; i <= 100; ++i) {
    out.waits.add(static_cast<int64_t>((i * (1 + level) + noise) * 1e9));
    out.holds.add(20'000'000'000);
  }
  out.queue_area = 3600 * (level + 1);
  out.gpu_s = {3600, 0, 360, 720, 360, 0, 2160};
  for (int i = 1; i <= 4; ++i)
    out.shares.push_back({fmt::format("agent#{}", i), 1, 25, 100.0 * i});
  out.jain_seconds = 0.5 + level / 10;
  for (int i = 1; i <= 10; ++i) {
    outcome_point p;
    p.time_s = 360 * i;
    p.gpu_hours = 0.2 * i;
    p.geomean = 1 + (0.04 + 0.01 * level) * i + 0.01 * noise;
    p.wins = static_cast<uint32_t>(i);
    p.above_two = 1;
    p.median_sol = 0.5;
    out.curve.push_back(p);
  }
  out.problem_s.assign(10, 100);
  return out;
}

lab_plan made_up_plan(const std::vector<std::string>& planners, uint32_t seeds) {
  lab_plan plan;
  plan.name = "made-up";
  plan.points.resize(1);
  plan.seeds = seeds;
  plan.baselines = {0};
  for (const auto& planner : planners) {
    lab_variant v;
    v.what.name = "made-up";
    v.what.duration_s = 3600;
    v.what.gpus.resize(1);
    v.what.gpus.front().count = 2;
    v.what.agents.resize(1);
    v.what.agents.front().count = 4;
    v.what.problems = 10;
    v.what.planner = planner;
    v.config = std::string(63, 'c') + static_cast<char>('0' + plan.variants.size());
    plan.variants.push_back(std::move(v));
  }
  return plan;
}

std::vector<lab_row> made_up_rows(const lab_plan& plan) {
  std::vector<lab_row> out;
  for (size_t v = 0; v < plan.variants.size(); ++v)
    for (uint32_t s = 0; s < plan.seeds; ++s)
      out.push_back(row_of(
        v, plan.first_seed + s, made_up_result(static_cast<double>(v), plan.first_seed + s)));
  return out;
}

} // namespace gristmill::test
