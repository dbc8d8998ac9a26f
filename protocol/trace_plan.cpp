#include "protocol/trace_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

// 2 and 3 are left out: references split by them, and an axis of that size would look like a
// constant.
constexpr std::array<int64_t, 24> primes{
  5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101};
constexpr std::array<int64_t, 7> multipliers{1, 2, 4, 8, 16, 32, 64};
/// The tracer follows the shapes alone where real tensors would be large; sizes stay computable.
constexpr uint64_t elements_max = uint64_t{1} << 40;

/// Names of an axis that is a multiple of another, and of the other.
using multiple = std::pair<std::string, std::string>;

/// All axes in the order of the definition. Gives every variable one a size of its own. `turn` 1
/// starts where `turn` 0 ends, so that no axis has the same size in both sets. With `of`, its first
/// axis is twice its second one, or three times in the other turn.
result<axis_values> tiny_axes(
  const definition& def, size_t turn, int64_t multiplier, const multiple* of) {
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
  if (of != nullptr)
    for (auto& [name, size] : axes)
      if (name == of->first)
        size = *find_axis_value(axes, of->second) * static_cast<int64_t>(2 + turn);
  auto resolved = resolve_axes(def, axes);
  if (!resolved)
    return pass(resolved);
  axis_values ordered;
  for (const auto& one : def.axes)
    if (const auto* value = find_axis_value(*resolved, one.name))
      ordered.emplace_back(one.name, *value);
  return ordered;
}

/// Which scalar inputs keep the number of the workloads in both calls, so that the graph holds them
/// as plain numbers.
enum class kept_scalars : uint8_t {
  none = 0,
  /// Zero, one and other whole numbers: switches and counts, with which a moved number does
  /// something else (a share of elements to drop, a number of heads).
  whole,
  all,
};

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

bool is_whole(const scalar_value& scalar) {
  return scalar.is_integer || scalar.number == std::floor(scalar.number);
}

result<scalar_value> value_in(const tensor_spec& spec, const workload& work) {
  if (const auto* given = work.find_input(spec.name); given && given->kind == input_kind::scalar)
    return make_scalar(spec.type, given->value);
  return make_scalar(spec.type, python_number{int64_t{1}});
}

result<scalar_value> first_value(const tensor_spec& spec, const std::vector<workload>& workloads) {
  if (!workloads.empty())
    return value_in(spec, workloads.front());
  return make_scalar(spec.type, python_number{int64_t{1}});
}

/// Whether all workloads give a scalar input the same number, so that a graph may hold it.
bool is_the_same_everywhere(const tensor_spec& spec, const std::vector<workload>& workloads) {
  for (const auto& work : workloads) {
    const auto* given = work.find_input(spec.name);
    if (given == nullptr || given->kind != input_kind::scalar)
      return false;
    const auto value = value_in(spec, work);
    const auto first = value_in(spec, workloads.front());
    if (!value || !first || !(*value == *first))
      return false;
  }
  return !workloads.empty();
}

/// Whether any scalar input is kept at that level that the level before moved.
bool keeps_more(const definition& def, const std::vector<workload>& workloads, kept_scalars kept) {
  return std::any_of(def.inputs.begin(), def.inputs.end(), [&](const tensor_spec& spec) {
    if (!spec.is_scalar || !is_the_same_everywhere(spec, workloads))
      return false;
    const auto value = first_value(spec, workloads);
    return value && is_whole(*value) == (kept == kept_scalars::whole);
  });
}

result<trace_set> make_set(const definition& def, const std::vector<workload>& workloads,
  size_t turn, int64_t multiplier, kept_scalars kept, const multiple* of = nullptr) {
  auto axes = tiny_axes(def, turn, multiplier, of);
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
    const bool keep = kept != kept_scalars::none && is_the_same_everywhere(spec, workloads)
      && (kept == kept_scalars::all || is_whole(*value));
    set.scalars.emplace_back(spec.name, keep ? *value : moved(*value, turn, set.scalars.size()));
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

namespace {

/// Pairs of variable axes of which one may have to be a multiple of the other: it is in every
/// workload, and not always the same size. Heads of queries and of keys are such axes.
std::vector<multiple> possible_multiples(
  const definition& def, const std::vector<workload>& workloads) {
  constexpr size_t pairs_max = 12;
  std::vector<multiple> pairs;
  for (const auto& a : def.axes)
    for (const auto& b : def.axes) {
      if (a.kind != axis_kind::variable || b.kind != axis_kind::variable || a.name == b.name)
        continue;
      bool always = true;
      bool ever_more = workloads.empty();
      for (const auto& work : workloads) {
        const auto* more = find_axis_value(work.axes, a.name);
        const auto* less = find_axis_value(work.axes, b.name);
        always = always && more && less && *less > 0 && *more % *less == 0;
        ever_more = ever_more || (more && less && *more > *less);
      }
      if (always && ever_more && pairs.size() < pairs_max)
        pairs.emplace_back(a.name, b.name);
    }
  return pairs;
}

} // namespace

result<std::vector<trace_attempt>> make_trace_attempts(
  const definition& def, const std::vector<workload>& workloads) {
  std::vector<trace_attempt> attempts;
  failure last{errc::refused, def.name + ": no trace"};
  for (auto kept : {kept_scalars::none, kept_scalars::whole, kept_scalars::all}) {
    if (kept != kept_scalars::none && !keeps_more(def, workloads, kept))
      continue;
    for (int64_t multiplier : multipliers) {
      auto first = make_set(def, workloads, 0, multiplier, kept);
      auto second = make_set(def, workloads, 1, multiplier, kept);
      if (first && second)
        attempts.push_back({{std::move(*first), std::move(*second)}});
      else
        last = first ? second.error() : first.error();
    }
  }
  for (const auto& pair : possible_multiples(def, workloads)) {
    auto first = make_set(def, workloads, 0, 1, kept_scalars::none, &pair);
    auto second = make_set(def, workloads, 1, 1, kept_scalars::none, &pair);
    if (first && second)
      attempts.push_back({{std::move(*first), std::move(*second)}});
  }
  if (attempts.empty())
    return fail(errc::refused, last.what);
  return attempts;
}

} // namespace gristmill
