#include "protocol/exporter/unit_choice.hpp"

#include "protocol/plan_scope.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

using named_scalars = std::vector<std::pair<std::string, scalar_value>>;

void collect_entries(const std::vector<plan_step>& steps, std::vector<std::string>& out) {
  for (const auto& step : steps) {
    collect_entries(step.steps, out);
    if (step.what == plan_step::op::launch
      && std::find(out.begin(), out.end(), step.entry) == out.end())
      out.push_back(step.entry);
  }
}

result<named_scalars> scalars_of(const definition& def, const workload& work) {
  named_scalars out;
  for (const auto& spec : def.inputs) {
    if (!spec.is_scalar)
      continue;
    const auto* given = work.find_input(spec.name);
    if (given == nullptr || given->kind != input_kind::scalar)
      return fail(errc::unsupported,
        fmt::format("inputs.{}: a number that the workload does not state", spec.name));
    auto value = make_scalar(spec.type, given->value);
    if (!value)
      return fail(value.error().code, fmt::format("inputs.{}: {}", spec.name, value.error().what));
    out.emplace_back(spec.name, *value);
  }
  return out;
}

result<void> add_tensors(const std::vector<tensor_spec>& specs, resolved_buffer::role role,
  const axis_values& axes, const named_scalars& scalars, plan_scope& scope, uint32_t& count) {
  for (const auto& spec : specs) {
    if (spec.is_scalar && role == resolved_buffer::role::input) {
      for (const auto& [scalar_name, value] : scalars)
        if (scalar_name == spec.name)
          scope.add_value("in", spec.name,
            spec.type == dtype::boolean ? expression_value{value.integer != 0}
              : value.is_integer        ? expression_value{value.integer}
                                        : expression_value{value.number});
      continue;
    }
    auto shape = resolve_shape(spec, axes);
    if (!shape)
      return pass(shape);
    auto bytes = storage_bytes(spec.type, *shape);
    if (!bytes)
      return pass(bytes);
    resolved_buffer buffer;
    buffer.kind = role;
    buffer.name = spec.name;
    buffer.type = spec.type;
    buffer.shape = std::move(*shape);
    buffer.bytes = *bytes;
    scope.add_buffer(buffer, count++);
  }
  return {};
}

/// The names that a variant and its defines may use.
result<plan_scope> scope_of(const plan& source, const definition& def, const axis_values& axes,
  const named_scalars& scalars, const device_facts& device) {
  plan_scope scope;
  for (const auto& [axis_name, value] : axes)
    scope.add_value("axis", axis_name, value);
  uint32_t count = 0;
  if (auto added =
        add_tensors(def.inputs, resolved_buffer::role::input, axes, scalars, scope, count);
      !added)
    return pass(added);
  if (auto added =
        add_tensors(def.outputs, resolved_buffer::role::output, axes, scalars, scope, count);
      !added)
    return pass(added);
  scope.add_value("", "sm_count", int64_t{device.sm_count});
  scope.add_value("", "smem_per_block", int64_t{device.smem_per_block});
  scope.add_value("", "smem_per_sm", int64_t{device.smem_per_sm});
  scope.add_value("", "l2_bytes", static_cast<int64_t>(device.l2_bytes));
  scope.add_value("", "arch", int64_t{device.arch});
  for (const auto& [let_name, text] : source.let) {
    auto value = evaluate(text, scope);
    if (!value)
      return pass(value);
    scope.add_value("", let_name, std::move(*value));
  }
  return scope;
}

result<export_unit> choose_unit(const plan& source, const definition& def, const axis_values& axes,
  const named_scalars& scalars, const device_facts& device) {
  auto scope = scope_of(source, def, axes, scalars, device);
  if (!scope)
    return pass(scope);
  auto inside = evaluate_bool(source.domain, *scope);
  if (!inside)
    return pass(inside);
  if (!*inside)
    return fail(errc::refused, "plan: domain: does not hold");
  export_unit out;
  for (; out.variant < source.variants.size(); ++out.variant) {
    auto fits = evaluate_bool(source.variants[out.variant].when, *scope);
    if (!fits)
      return pass(fits);
    if (*fits)
      break;
  }
  if (out.variant == source.variants.size())
    return fail(errc::refused, "plan: no variant's `when` holds");
  for (const auto& [define_name, text] : source.variants[out.variant].defines) {
    auto value = evaluate(text, *scope);
    if (!value)
      return pass(value);
    out.defines.emplace_back(define_name, *value);
    if (std::holds_alternative<int64_t>(*value) && !scope->knows(define_name))
      scope->add_value("", define_name, *value);
  }
  return out;
}

} // namespace

std::vector<std::string> entries_of(const plan_variant& variant) {
  std::vector<std::string> out;
  collect_entries(variant.steps, out);
  return out;
}

result<std::vector<export_unit>> choose_units(const plan& source, const definition& def,
  const std::vector<workload>& workloads, const device_facts& device) {
  std::vector<export_unit> out;
  for (const auto& work : workloads) {
    const auto at = [&](const failure& why) {
      return fail(why.code, fmt::format("workload {}: {}", work.uuid, why.what));
    };
    auto scalars = scalars_of(def, work);
    if (!scalars)
      return at(scalars.error());
    auto axes = resolve_axes(def, work.axes);
    if (!axes)
      return at(axes.error());
    auto unit = choose_unit(source, def, *axes, *scalars, device);
    if (!unit)
      return at(unit.error());
    auto resolved = resolve(source, def, *axes, *scalars, device);
    // What the devices of this build lack is no reason: a real one has it.
    if (!resolved && resolved.error().code != errc::unsupported)
      return at(resolved.error());
    if (resolved)
      for (const auto& entry : resolved->unit.entries)
        unit->entries.push_back(entry.expression);
    else
      unit->entries = entries_of(source.variants[unit->variant]);
    const auto same = std::find_if(out.begin(), out.end(), [&](const export_unit& known) {
      return known.variant == unit->variant && known.defines == unit->defines;
    });
    if (same == out.end()) {
      out.push_back(std::move(*unit));
      continue;
    }
    for (auto& entry : unit->entries)
      if (std::find(same->entries.begin(), same->entries.end(), entry) == same->entries.end())
        same->entries.push_back(std::move(entry));
  }
  if (out.size() > plan_limits::units)
    return fail(errc::refused,
      fmt::format("plan: the workloads need {} different units, and {} are allowed", out.size(),
        plan_limits::units));
  return out;
}

} // namespace gristmill
