#include "simulation/core/world.hpp"

#include "gpu/lease/need.hpp"
#include "planning/allocation/allocation_text.hpp"
#include "simulation/core/lab_world.hpp"
#include "simulation/core/oracle_allocation.hpp"
#include "simulation/model/gpu_places.hpp"
#include "simulation/model/scenario_check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace gristmill {

namespace {

using std::chrono::nanoseconds;

/// Whole quanta, at least as long.
nanoseconds whole(nanoseconds t) {
  constexpr int64_t quantum = int64_t{1} << quantum_bits;
  return nanoseconds{(t.count() + quantum - 1) / quantum * quantum};
}

/// Longer than any run.
constexpr nanoseconds never = std::chrono::hours{24 * 366 * 50};

result<void> check_needs(const scenario& what, const std::set<std::string>& needs) {
  const auto gpus = gpu_places(what);
  for (const auto& text : needs) {
    auto need = parse_need(text);
    if (!need)
      return fail(errc::invalid_input, "agents.need: " + need.error().what);
    const auto satisfies_it = [&](const gpu_place& gpu) {
      return fits(*need, {gpu.model, {}, gpu.node, 0});
    };
    if (std::any_of(gpus.begin(), gpus.end(), satisfies_it))
      continue;
    std::set<std::string> there;
    for (const auto& gpu : gpus)
      there.insert(gpu.model);
    return fail(errc::invalid_input,
      fmt::format("agents.need: no GPU of the scenario satisfies '{}'; there are: {}", text,
        fmt::join(there, ", ")));
  }
  return {};
}

result<planner_factory> planner_of(const scenario& what) {
  if (what.planner == "oracle")
    return [](const scenario& of, const std::vector<problem_curve>& truth) {
      return make_oracle_allocation(truth, of.learning);
    };
  auto read = allocation_from_text(what.planner);
  if (!read)
    return fail(read.error().code, "planner: " + read.error().what);
  return [make = std::move(*read)](const scenario& of, const std::vector<problem_curve>&) {
    return make(of.problems, false);
  };
}

} // namespace

result<std::unique_ptr<world>> world::make(const scenario& what, world_options options) {
  if (auto good = check_scenario(what); !good)
    return pass(good);
  std::set<std::string> needs;
  if (options.recorded.empty())
    for (const auto& group : what.agents)
      needs.insert(group.need);
  for (const auto& who : options.recorded)
    for (const auto& lease : who.leases) {
      needs.insert(lease.need);
      if (lease.gap < nanoseconds{0} || lease.hold < nanoseconds{0}
        || lease.gave_up_after < nanoseconds{0} || lease.term < nanoseconds{0})
        return fail(errc::invalid_input,
          fmt::format("a recorded lease of '{}' has a time below 0", who.name));
    }
  if (auto good = check_needs(what, needs); !good)
    return pass(good);
  if (!options.planner && what.problems > 0) {
    auto planner = planner_of(what);
    if (!planner)
      return pass(planner);
    options.planner = std::move(*planner);
  }
  auto incidents = plan_incidents(what, options.seed);
  if (!incidents)
    return pass(incidents);
  auto out = std::make_unique<lab_world>(what, std::move(options), std::move(*incidents));
  if (out->entity_count() > entities_max)
    return fail(errc::invalid_input,
      fmt::format("{} agents and {} GPUs are more than the {} that a run may have together",
        out->agent_count(), out->gpu_count(), entities_max - 1));
  return out;
}

lease_table_config table_config_for(const scenario& what) {
  lease_table_config out;
  for (size_t i = 0; i < out.caps.size(); ++i)
    out.caps[i] = whole(time_of(what.caps_s[i]));
  out.waiting_max = std::max<uint32_t>(entities_max, what.arrivals.jobs_max) + 1;
  out.patience_max = whole(time_of(what.patience_s));
  // Executors answer at once, end their terms themselves, and verify after a known time: these
  // limits are for what goes wrong in production, and never reached here.
  out.grant_answer_limit = whole(out.grant_answer_limit);
  out.expiry_grace = whole(out.expiry_grace);
  out.verify_limit =
    whole(out.verify_limit + 2 * (time_of(what.hold.verify_s) + time_of(what.fate.hang_cleanup_s)));
  out.probe_limit = whole(out.probe_limit);
  out.probe_backoff = whole(out.probe_backoff);
  out.probe_backoff_max = whole(out.probe_backoff_max);
  // One block for the whole run, so that no journal has to answer in between.
  out.token_block = uint64_t{1} << 32;
  // Nobody looks at alarms here; looking costs time.
  out.alarm_every = never;
  out.log_events = false;
  out.estimate_places = false;
  return out;
}

} // namespace gristmill
