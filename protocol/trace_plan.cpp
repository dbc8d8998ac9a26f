#include "protocol/trace_plan.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

// 2 and 3 are left out: references split by them, and an axis of that size would look like a
// constant.
constexpr std::array<int64_t, 24> primes{
  5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101};
constexpr std::array<int64_t, 7> multipliers{1, 2, 4, 8, 16, 32, 64};
constexpr uint64_t elements_max = uint64_t{64} << 20;

/// All axes in the order of the definition. Gives every variable one a size of its own. `turn` 1
/// starts where `turn` 0 ends, so that no axis has the same size in both sets.
result<axis_values> tiny_axes(const definition& def, size_t turn, int64_t multiplier) {
  std::set<int64_t> taken;
  size_t variables = 0;
  for (const auto& one : def.axes) {
    if (one.kind == axis_kind::constant)
      taken.insert(one.value);
    variables += one.kind == axis_kind::variable;
  }
  axis_values axes;
  size_t skip = turn * variables;
  auto next = primes.begin();
  for (const auto& one : def.axes) {
    if (one.kind != axis_kind::variable)
      continue;
    for (;; ++next) {
      if (next == primes.end())
        return fail(errc::refused,
          fmt::format("{} variable axes are more than the trace can tell apart", variables));
      if (taken.contains(*next * multiplier))
        continue;
      if (skip == 0)
        break;
      --skip;
    }
    axes.emplace_back(one.name, *next++ * multiplier);
  }
  auto resolved = resolve_axes(def, axes);
  if (!resolved)
    return pass(resolved);
  axis_values ordered;
  for (const auto& one : def.axes)
    if (const auto* value = find_axis_value(*resolved, one.name))
      ordered.emplace_back(one.name, *value);
  return ordered;
}

/// The workload's number, moved a little and by its own amount, so that it is found again among the
/// arguments of the operators. What only a certain number may be (a count, a switch) moves by one
/// in the second set, or not at all.
scalar_value moved(scalar_value scalar, size_t turn, size_t index) {
  if (scalar.type == dtype::boolean)
    return scalar;
  if (scalar.is_integer) {
    scalar.integer += static_cast<int64_t>(turn);
    scalar.number = static_cast<double>(scalar.integer);
    return scalar;
  }
  const double share = 1e-3 * static_cast<double>(2 * index + turn + 1);
  scalar.number = scalar.number == 0 ? share : scalar.number * (1 + share);
  return scalar;
}

result<scalar_value> first_value(const tensor_spec& spec, const std::vector<workload>& workloads) {
  if (!workloads.empty())
    if (const auto* given = workloads.front().find_input(spec.name);
        given && given->kind == input_kind::scalar)
      return make_scalar(spec.type, given->value);
  return make_scalar(spec.type, python_number{int64_t{1}});
}

result<trace_set> make_set(
  const definition& def, const std::vector<workload>& workloads, size_t turn, int64_t multiplier) {
  auto axes = tiny_axes(def, turn, multiplier);
  if (!axes)
    return pass(axes);
  trace_set set{*axes, {}, {}, {}};
  uint64_t elements = 0;
  auto add = [&](const tensor_spec& spec, std::vector<trace_tensor>& to) -> result<void> {
    auto shape = resolve_shape(spec, *axes);
    if (!shape)
      return pass(shape);
    auto count = element_count(*shape);
    if (!count)
      return pass(count);
    elements += std::min(*count, elements_max + 1);
    to.push_back({spec.name, spec.type, std::move(*shape)});
    return {};
  };
  for (const auto& spec : def.inputs) {
    if (!spec.is_scalar) {
      if (auto added = add(spec, set.inputs); !added)
        return pass(added);
      continue;
    }
    auto value = first_value(spec, workloads);
    if (!value)
      return pass(value);
    set.scalars.emplace_back(spec.name, moved(*value, turn, set.scalars.size()));
  }
  for (const auto& spec : def.outputs)
    if (!spec.is_scalar)
      if (auto added = add(spec, set.outputs); !added)
        return pass(added);
  if (elements > elements_max)
    return fail(errc::refused,
      fmt::format("{}: its constant axes alone make more than {} elements, too many for a trace",
        def.name, elements_max));
  return set;
}

} // namespace

result<std::vector<trace_attempt>> make_trace_attempts(
  const definition& def, const std::vector<workload>& workloads) {
  std::vector<trace_attempt> attempts;
  failure last{errc::refused, def.name + ": no trace"};
  for (int64_t multiplier : multipliers) {
    auto first = make_set(def, workloads, 0, multiplier);
    auto second = make_set(def, workloads, 1, multiplier);
    if (first && second)
      attempts.push_back({{std::move(*first), std::move(*second)}});
    else
      last = first ? second.error() : first.error();
  }
  if (attempts.empty())
    return fail(errc::refused, last.what);
  return attempts;
}

} // namespace gristmill
