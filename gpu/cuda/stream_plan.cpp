#include "gpu/cuda/stream_plan.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr uint32_t none = UINT32_MAX;

result<void> check_step(std::span<const call_step> steps, uint32_t i) {
  const auto& step = steps[i];
  for (auto before : step.after)
    if (before >= i)
      return fail(errc::invalid_input,
        fmt::format("step {} waits for step {}, which does not come before it", i, before));
  if (step.what != call_step::op::launch || !step.pdl)
    return {};
  if (step.after.size() != 1 || steps[step.after[0]].what != call_step::op::launch)
    return fail(errc::invalid_input,
      fmt::format("step {} is a dependent launch (pdl), so it needs exactly one step before it, "
                  "which is a launch",
        i));
  return {};
}

} // namespace

result<stream_plan> plan_streams(std::span<const call_step> steps) {
  stream_plan plan;
  plan.steps.resize(steps.size());
  // The last step of each stream so far.
  std::vector<uint32_t> tails;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (auto done = check_step(steps, i); !done)
      return pass(done);
    auto& placed = plan.steps[i];
    const auto& after = steps[i].after;
    auto chosen = tails.end();
    if (!after.empty())
      chosen = std::find_if(tails.begin(), tails.end(),
        [&](uint32_t tail) { return std::find(after.begin(), after.end(), tail) != after.end(); });
    if (chosen == tails.end() && tails.size() >= streams_max)
      chosen = tails.begin() + i % streams_max;
    if (chosen == tails.end()) {
      tails.push_back(none);
      chosen = tails.end() - 1;
      placed.forks = after.empty() && tails.size() > 1;
    }
    placed.stream = static_cast<uint32_t>(chosen - tails.begin());
    for (auto before : after)
      if (plan.steps[before].stream != placed.stream) {
        placed.waits.push_back(before);
        plan.steps[before].records = true;
      }
    if (steps[i].pdl && (*chosen != after[0]))
      return fail(errc::invalid_input,
        fmt::format("step {} is a dependent launch (pdl), but another step follows step {} first",
          i, after[0]));
    *chosen = i;
  }
  for (uint32_t s = 1; s < tails.size(); ++s) {
    plan.joins.push_back(tails[s]);
    plan.steps[tails[s]].records = true;
  }
  plan.streams = static_cast<uint32_t>(std::max<size_t>(1, tails.size()));
  return plan;
}

} // namespace gristmill::cuda
