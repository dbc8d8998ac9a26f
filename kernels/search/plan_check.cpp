#include "kernels/search/plan_check.hpp"

#include "protocol/plan.hpp"

#include <fmt/format.h>
#include <set>
#include <utility>

namespace gristmill {

namespace {

result<void> check_one(const plan& parsed, const definition& def, const plan_binding& binding,
  const device_facts& device, std::set<std::string>& units) {
  const auto full = resolve(parsed, def, binding.full_axes, binding.full_numbers, device);
  if (!full)
    return fail(full.error().code, fmt::format("workload {}: {}", binding.uuid, full.error().what));
  const auto twin = resolve(parsed, def, binding.check_axes, binding.check_numbers, device);
  if (!twin)
    return fail(twin.error().code,
      fmt::format("workload {} (shrunken): {}", binding.uuid, twin.error().what));
  if (full->unit.key != twin->unit.key)
    return fail(errc::refused,
      fmt::format(
        "workload {}: its shrunken twin would run other code than the workload", binding.uuid));
  for (const resolved_step& step : full->steps) {
    if (step.shared_bytes > device.smem_per_block)
      return fail(errc::refused,
        fmt::format("workload {}: {} needs {} bytes of shared memory, and a block has {}",
          binding.uuid, step.entry, step.shared_bytes, device.smem_per_block));
  }
  units.insert(full->unit.key);
  return {};
}

} // namespace

plan_check make_plan_check(
  definition def, std::vector<plan_binding> bindings, device_facts device) {
  return [def = std::move(def), bindings = std::move(bindings), device](
           const generated_kernel& kernel) -> result<void> {
    if (kernel.plan.size() > plan_limits::text_bytes)
      return fail(errc::refused,
        fmt::format("the launch plan has {} bytes, and {} are allowed", kernel.plan.size(),
          plan_limits::text_bytes));
    const auto parsed = parse_plan(kernel.plan);
    if (!parsed)
      return pass(parsed);
    std::set<std::string> units;
    for (const plan_binding& binding : bindings) {
      if (auto fits = check_one(*parsed, def, binding, device, units); !fits)
        return fits;
    }
    if (units.size() > plan_limits::units)
      return fail(errc::refused,
        fmt::format("the workloads need {} different units, and {} are allowed", units.size(),
          plan_limits::units));
    return {};
  };
}

} // namespace gristmill
