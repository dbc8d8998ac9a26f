#include "gpu/children/call_builder.hpp"

#include "gpu/launch_parameters.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

pass_result<call_builder> call_builder::make(
  device& gpu, module_handle module, const run_pass& pass, const run_unit& unit) {
  call_builder out(gpu, pass);
  out.functions_.resize(pass.steps.size());
  out.properties_.resize(pass.steps.size());
  for (size_t i = 0; i < pass.steps.size(); ++i) {
    const auto& step = pass.steps[i];
    if (step.what != resolved_step::op::launch)
      continue;
    const auto entry = std::find_if(unit.entries.begin(), unit.entries.end(),
      [&](const auto& one) { return one.expression == step.entry; });
    if (entry == unit.entries.end())
      return fail_pass(
        verdict_status::infrastructure, fmt::format("the unit has no entry for `{}`", step.entry));
    auto found = gpu.find_function(module, entry->symbol);
    if (!found)
      return device_said(found.error());
    auto described = gpu.describe(*found);
    if (!described)
      return device_said(described.error());
    out.functions_[i] = *found;
    out.properties_[i] = std::move(*described);
  }
  return out;
}

pass_result<std::vector<call_step>> call_builder::steps(
  const std::vector<device_pointer>& addresses) const {
  std::vector<call_step> out(pass_->steps.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const auto& step = pass_->steps[i];
    auto& made = out[i];
    made.after = step.after;
    switch (step.what) {
    case resolved_step::op::launch: {
      made.what = call_step::op::launch;
      made.function = functions_[i];
      made.shape = {step.grid, step.block, step.cluster, step.shared_bytes, step.cooperative};
      made.pdl = step.pdl;
      made.carveout = step.carveout;
      auto parameters = lay_out(step.args, addresses, properties_[i], *gpu_);
      if (!parameters)
        return device_said(parameters.error());
      if (parameters->size() != properties_[i].parameter_bytes)
        return fail_pass(verdict_status::runtime_error,
          fmt::format("`{}` takes {} bytes of arguments, but the plan passes {}", step.entry,
            properties_[i].parameter_bytes, parameters->size()));
      made.parameters = std::move(*parameters);
      break;
    }
    case resolved_step::op::memset:
    case resolved_step::op::copy:
      made.what =
        step.what == resolved_step::op::copy ? call_step::op::copy : call_step::op::memset;
      made.bytes = step.bytes;
      made.to = step.bytes == 0 ? 0 : addresses[step.buffer] + step.offset;
      made.from = step.bytes == 0 || step.what == resolved_step::op::memset
        ? 0
        : addresses[step.src_buffer] + step.src_offset;
      made.width = step.width;
      made.value = step.value;
      break;
    }
  }
  return out;
}

} // namespace gristmill
