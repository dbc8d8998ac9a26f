#include "actors/input_cases.hpp"

#include "actors/input_numbers.hpp"
#include "protocol/shrink.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>

namespace gristmill {

namespace {

/// Values must differ from one timed call to the next.
constexpr uint64_t fresh_sets_max = 3;
/// Of a case that is not timed: beyond it the workload's smaller twin is taken, where it can be.
constexpr uint64_t style_elements_max = 16'000'000;
constexpr uint64_t style_macs_max = uint64_t{1} << 30;
constexpr std::array<int64_t, 8> steps{1, 2, 4, 8, 16, 32, 64, 128};
constexpr std::array<input_style, 5> held_out_styles{input_style::held_out, input_style::tiny,
  input_style::large, input_style::constant_rows, input_style::nan_rows};

/// Of all tensors of a workload, inputs and outputs.
result<uint64_t> set_bytes(const definition& def, const axis_values& axes) {
  uint64_t sum = 0;
  for (const auto* specs : {&def.inputs, &def.outputs})
    for (const auto& spec : *specs) {
      if (spec.is_scalar)
        continue;
      auto shape = resolve_shape(spec, axes);
      if (!shape)
        return pass(shape);
      auto bytes = storage_bytes(spec.type, *shape);
      if (!bytes)
        return pass(bytes);
      sum += *bytes;
    }
  return sum;
}

bool is_generated(const workload& work, const tensor_spec& spec) {
  if (spec.is_scalar)
    return false;
  const auto* given = work.find_input(spec.name);
  return given == nullptr || given->kind == input_kind::random;
}

bool has_code_inputs(const problem& target, const workload& work) {
  return !target.def.custom_inputs_entrypoint.empty()
    && std::any_of(work.inputs.begin(), work.inputs.end(),
      [](const input_spec& given) { return given.kind == input_kind::custom; });
}

bool has_generated_inputs(const problem& target, const workload& work) {
  return std::any_of(target.def.inputs.begin(), target.def.inputs.end(),
    [&](const tensor_spec& spec) { return is_generated(work, spec); });
}

/// How many sets the limits leave room for, at least one.
struct room_for_sets {
  uint64_t by_bytes = 1;
  uint64_t by_macs = 1;
  uint64_t bytes = 0;
  uint64_t macs = 0;
};

result<room_for_sets> room_of(
  const run_context& context, const definition& def, const axis_values& axes) {
  auto bytes = set_bytes(def, axes);
  if (!bytes)
    return pass(bytes);
  auto macs = expected_macs(def, axes);
  if (!macs)
    return pass(macs);
  room_for_sets out;
  out.bytes = *bytes;
  out.macs = *macs;
  constexpr uint64_t endless = std::numeric_limits<uint64_t>::max();
  out.by_bytes = *bytes == 0 ? endless : std::max<uint64_t>(1, context.sets_bytes_max / *bytes);
  out.by_macs = *macs == 0 ? endless : std::max<uint64_t>(1, context.sets_macs_max / *macs);
  return out;
}

/// Whether drawing in this style makes the problem's inputs differ from those of a plainer style.
bool changes_something(const problem& target, const workload& work, input_style style) {
  for (const auto& spec : target.def.inputs) {
    if (!is_generated(work, spec))
      continue;
    const auto& op = target.def.op_type;
    const auto plainer =
      style == input_style::held_out ? input_style::standard : input_style::held_out;
    // The shape matters to masks and weights alone, which no style but `held_out` changes.
    const std::vector<int64_t> shape(spec.shape.size(), 8);
    const auto in = [&](input_style s) {
      return choose_distribution_in(
        style_of(target, work, spec, s), spec.name, spec.description, spec.type, shape, op);
    };
    if (in(style) != in(plainer))
      return true;
  }
  return false;
}

/// Ties and NaN are ordered in more than one right way.
bool has_integer_outputs(const definition& def) {
  return std::any_of(def.outputs.begin(), def.outputs.end(),
    [](const tensor_spec& spec) { return !is_float(spec.type); });
}

std::string label_of(input_style style) {
  switch (style) { // no default: the compiler reports a missing case
  case input_style::standard:
  case input_style::held_out:
    break;
  case input_style::tiny:
    return "held-out, tiny values";
  case input_style::large:
    return "held-out, large values";
  case input_style::constant_rows:
    return "held-out, constant rows";
  case input_style::nan_rows:
    return "held-out, rows with NaN";
  }
  return "held-out";
}

/// Builds the cases of one workload in a draw.
class drawing {
public:
  drawing(const run_context& context, const problem& target, const workload& work,
    const std::string& draw, const resolved_candidate& candidate)
    : context_(context), target_(target), work_(work), draw_(draw), candidate_(candidate) {
    for (const auto& unit : candidate.units)
      units_.insert(unit.key);
  }

  result<std::vector<drawn_case>> all() {
    auto begun = begin();
    if (!begun)
      return pass(begun);
    if (auto added = add_fresh(); !added)
      return pass(added);
    for (const auto style : held_out_styles)
      if (changes_something(target_, work_, style)
        && !((style == input_style::constant_rows || style == input_style::nan_rows)
          && has_integer_outputs(target_.def)))
        add(label_of(style), small_, style);
    add_neighbours();
    return std::move(out_);
  }

private:
  result<void> begin() {
    auto numbers = all_numbers(context_, target_, work_, input_set::check);
    if (!numbers)
      return pass(numbers);
    numbers_ = std::move(*numbers);
    auto full = resolve_axes(target_.def, work_.axes);
    if (!full)
      return pass(full);
    full_ = std::move(*full);
    auto check = shrink_axes(target_.def, work_, context_.check_elements_max);
    if (!check)
      return pass(check);
    check_ = std::move(*check);
    small_ = check_;
    twin_limits limits;
    limits.elements = std::min(style_elements_max, context_.check_elements_max);
    limits.macs = style_macs_max;
    limits.macs_hard = std::max(limits.macs_hard, limits.macs);
    if (auto smaller = shrink_axes(target_.def, work_, limits); smaller && runs(*smaller))
      small_ = std::move(*smaller);
    return {};
  }

  result<void> add_fresh() {
    auto room = room_of(context_, target_.def, check_);
    if (!room)
      return pass(room);
    const auto count = std::min({fresh_sets_max, uint64_t{context_.rounds}, room->by_bytes,
      // Half of what the pool may cost: a draw is made for each promotion.
      std::max<uint64_t>(1, room->by_macs / 2)});
    for (uint64_t i = 0; i < count; ++i)
      if (!add(fmt::format("fresh {}", i), check_, input_style::standard))
        return fail(errc::invalid_input,
          fmt::format("workload {}: the plan does not run its own shapes", work_.uuid));
    return {};
  }

  void add_neighbours() {
    for (const auto& axis : target_.def.axes) {
      if (axis.kind != axis_kind::variable)
        continue;
      const auto* value = find_axis_value(small_, axis.name);
      if (value == nullptr)
        continue;
      for (const int64_t sign : {1, -1})
        for (const int64_t step : steps) {
          const int64_t next = *value + sign * step;
          if (next < 1)
            break;
          if (add_neighbour(axis.name, next))
            break;
        }
    }
  }

  bool add_neighbour(const std::string& axis, int64_t value) {
    axis_values given;
    for (const auto& each : target_.def.axes)
      if (each.kind == axis_kind::variable)
        if (const auto* old = find_axis_value(small_, each.name))
          given.emplace_back(each.name, each.name == axis ? value : *old);
    auto axes = resolve_axes(target_.def, given);
    return axes
      && add(fmt::format("neighbour {}={}", axis, value), std::move(*axes), input_style::standard);
  }

  std::optional<resolved_workload> runs(const axis_values& axes) const {
    auto resolved = resolve(candidate_.parsed, target_.def, axes, numbers_, context_.facts);
    if (!resolved || !units_.contains(resolved->unit.key))
      return std::nullopt;
    return std::move(*resolved);
  }

  bool add(std::string label, axis_values axes, input_style style) {
    auto resolved = runs(axes);
    if (!resolved)
      return false;
    drawn_case one;
    one.what.set = {draw_, label};
    one.what.label = std::move(label);
    one.what.clock_shape = axes == full_ && style == input_style::standard;
    one.what.axes = std::move(axes);
    one.what.style = style;
    one.resolved = std::move(*resolved);
    out_.push_back(std::move(one));
    return true;
  }

  const run_context& context_;
  const problem& target_;
  const workload& work_;
  const std::string& draw_;
  const resolved_candidate& candidate_;
  std::set<std::string> units_;
  scalar_values numbers_;
  axis_values full_;
  axis_values check_;
  axis_values small_;
  std::vector<drawn_case> out_;
};

/// Those of which the oracle could make the references: not every reference takes every shape.
std::vector<drawn_case> existing_cases(const run_context& context, const problem& target,
  const std::string& uuid, std::vector<drawn_case> all) {
  std::erase_if(all, [&](const drawn_case& one) {
    return !std::all_of(
      target.def.outputs.begin(), target.def.outputs.end(), [&](const tensor_spec& spec) {
        std::error_code error;
        return std::filesystem::exists(
          reference_file(context, target.name, uuid, spec.name, one.what.set), error);
      });
  });
  return all;
}

} // namespace

input_style style_of(
  const problem& target, const workload& work, const tensor_spec& spec, input_style of_case) {
  if (of_case == input_style::standard || of_case == input_style::held_out)
    return of_case;
  for (const auto& each : target.def.inputs) {
    if (!is_generated(work, each))
      continue;
    const std::vector<int64_t> shape(each.shape.size(), 8);
    const auto kind =
      choose_distribution(each.name, each.description, each.type, shape, target.def.op_type).kind;
    if (kind == distribution::normal)
      return each.name == spec.name ? of_case : input_style::held_out;
  }
  return input_style::held_out;
}

bool is_shrunken(const run_context& context, const problem& target, const workload& work) {
  auto full = resolve_axes(target.def, work.axes);
  auto check = shrink_axes(target.def, work, context.check_elements_max);
  return full && check && *full != *check;
}

result<input_cases> pool_cases(
  const run_context& context, const problem& target, const workload& work) {
  auto full = resolve_axes(target.def, work.axes);
  if (!full)
    return pass(full);
  auto check = shrink_axes(target.def, work, context.check_elements_max);
  if (!check)
    return pass(check);
  input_cases out;
  uint64_t count = std::max<uint32_t>(1, context.rounds);
  const auto fewer = [&](uint64_t most, const std::string& why) {
    if (most >= count)
      return;
    count = most;
    out.note = fmt::format("{} of {} sets: {}", count, context.rounds, why);
  };
  if (has_code_inputs(target, work))
    fewer(1, "its inputs come from the problem's own code");
  else if (!has_generated_inputs(target, work))
    fewer(1, "its inputs come from files");
  auto room = room_of(context, target.def, *check);
  if (!room)
    return pass(room);
  fewer(room->by_bytes,
    fmt::format("one has {} MiB, and a workload may have {} MiB", (room->bytes >> 20) + 1,
      context.sets_bytes_max >> 20));
  fewer(room->by_macs,
    fmt::format("the reference of one takes {:.3g} multiply-adds, and those of a workload may take "
                "{:.3g}",
      static_cast<double>(room->macs), static_cast<double>(context.sets_macs_max)));
  for (uint64_t i = 0; i < count; ++i)
    out.cases.push_back({fmt::format("set {}", i), {{}, std::to_string(i)}, *check,
      input_style::standard, *check == *full});
  return out;
}

result<std::vector<drawn_case>> draw_cases(const run_context& context, const problem& target,
  const workload& work, const std::string& draw, const resolved_candidate& candidate) {
  if (!has_code_inputs(target, work))
    return drawing(context, target, work, draw, candidate).all();
  auto pool = pool_cases(context, target, work);
  if (!pool)
    return pass(pool);
  std::vector<drawn_case> out;
  for (auto& one : pool->cases)
    for (const auto& resolved : candidate.workloads)
      if (resolved.uuid == work.uuid)
        out.push_back({std::move(one), resolved.check});
  return out;
}

result<std::vector<drawn_case>> cases_of(const run_context& context, const problem& of,
  const workload& work, const std::string& draw, const resolved_candidate& candidate) {
  const auto mine = std::find_if(candidate.workloads.begin(), candidate.workloads.end(),
    [&](const candidate_workload& w) { return w.uuid == work.uuid; });
  if (mine == candidate.workloads.end())
    return fail(errc::not_found, fmt::format("{} has no workload {}", of.name, work.uuid));
  if (!draw.empty()) {
    auto drawn = draw_cases(context, of, work, draw, candidate);
    if (!drawn)
      return drawn;
    return existing_cases(context, of, work.uuid, std::move(*drawn));
  }
  auto pool = pool_cases(context, of, work);
  if (!pool)
    return pass(pool);
  std::vector<drawn_case> out;
  for (auto& one : pool->cases)
    out.push_back({std::move(one), mine->check});
  return out;
}

} // namespace gristmill
