#include "protocol/shrink.hpp"

#include "tensors/dtype.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>
#include <span>

namespace gristmill {

namespace {

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

/// An axis is kept modulo the first of these that makes the workload small enough: the larger, the
/// more tiles, vector widths and their remainders behave as in the original.
constexpr int64_t moduli[] = {64, 16, 8};

/// The same where the constants leave little room.
constexpr int64_t moduli_under_constants[] = {64, 16, 8, 4, 2, 1};

/// The smallest value that an axis may be reduced to.
int64_t floor_of(int64_t value, int64_t modulus) {
  return value < 2 * modulus ? value : modulus + value % modulus;
}

uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? no_limit : product;
}

uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? no_limit : sum;
}

struct candidate {
  axis_values resolved;
  uint64_t elements = 0;
  uint64_t macs = 0;
};

/// What a twin may have.
struct room {
  uint64_t elements = 0;
  uint64_t macs = 0;

  bool holds(const candidate& one) const { return one.elements <= elements && one.macs <= macs; }
};

result<candidate> measure(const definition& def, const axis_values& workload_axes) {
  auto resolved = resolve_axes(def, workload_axes);
  if (!resolved)
    return pass(resolved);
  auto elements = workload_elements(def, *resolved);
  if (!elements)
    return pass(elements);
  auto macs = expected_macs(def, *resolved);
  if (!macs)
    return pass(macs);
  return candidate{std::move(*resolved), *elements, *macs};
}

/// Sets an axis among those of a workload; false when it has no value there.
bool set_axis(axis_values& axes, const std::string& name, int64_t value) {
  const auto found =
    std::find_if(axes.begin(), axes.end(), [&](const auto& pair) { return pair.first == name; });
  if (found == axes.end())
    return false;
  found->second = value;
  return true;
}

/// Elements with every variable axis at 1, or 0 where expressions refuse that.
uint64_t elements_of_constants(const definition& def, axis_values axes) {
  for (const auto& each : def.axes)
    if (each.kind == axis_kind::variable)
      set_axis(axes, each.name, 1);
  auto least = measure(def, axes);
  return least ? least->elements : 0;
}

/// The twin with every axis kept modulo that, or the smallest there is, which is too big.
result<candidate> shrink_modulo(
  const definition& def, const workload& work, const room& room, int64_t modulus) {
  axis_values axes = work.axes;
  for (const auto& each : def.axes) {
    if (each.kind != axis_kind::variable)
      continue;
    const auto found = std::find_if(
      axes.begin(), axes.end(), [&](const auto& pair) { return pair.first == each.name; });
    if (found == axes.end())
      continue;
    int64_t& value = found->second;
    const int64_t floor = floor_of(value, modulus);
    const int64_t steps = (value - floor) / modulus;
    // The largest number of steps above the floor that fits. More elements come with a larger
    // axis, so halving finds it; a size that an expression refuses counts as one that does not fit.
    const auto fits = [&](int64_t k) -> std::optional<candidate> {
      value = floor + k * modulus;
      auto tried = measure(def, axes);
      if (!tried || !room.holds(*tried))
        return std::nullopt;
      return std::move(*tried);
    };
    if (auto smallest = fits(0)) {
      int64_t low = 0;
      int64_t high = steps; // The original, which does not fit.
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (auto tried = fits(middle)) {
          low = middle;
          smallest = std::move(tried);
        } else {
          high = middle;
        }
      }
      return std::move(*smallest);
    }
    value = floor;
  }
  return measure(def, axes);
}

/// The first modulus with a twin that the room holds; else the smallest twin of the last one.
result<candidate> shrink_within(
  const definition& def, const workload& work, const room& room, std::span<const int64_t> kept) {
  result<candidate> best = fail(errc::refused, "there is no modulus");
  for (int64_t modulus : kept) {
    best = shrink_modulo(def, work, room, modulus);
    if (best && room.holds(*best))
      return best;
  }
  return best;
}

} // namespace

result<uint64_t> workload_elements(const definition& def, const axis_values& resolved) {
  uint64_t total = 0;
  for (const auto* specs : {&def.inputs, &def.outputs}) {
    for (const auto& spec : *specs) {
      auto shape = resolve_shape(spec, resolved);
      if (!shape)
        return pass(shape);
      auto count = element_count(*shape);
      if (!count)
        return pass(count);
      // The shape's own limit of 2^62 leaves room for one addition, not for many.
      if (__builtin_add_overflow(total, *count, &total))
        return fail(errc::invalid_input, "the workload has more than 2^64 elements");
    }
  }
  return total;
}

namespace {

/// A float input of two dimensions or more.
struct matrix {
  const tensor_spec* spec = nullptr;
  std::vector<int64_t> shape;
  uint64_t elements = 1;
  /// Product of its sizes that follow a variable axis; 1 for a constant one.
  uint64_t variable = 1;
  bool is_constant = true;
};

bool mentions(std::string_view expression, const std::set<std::string>& names) {
  std::string word;
  for (size_t i = 0; i <= expression.size(); ++i) {
    const char c = i < expression.size() ? expression[i] : ' ';
    const bool in_word =
      c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (in_word) {
      word += c;
    } else {
      if (names.contains(word))
        return true;
      word.clear();
    }
  }
  return false;
}

/// Axes whose size a workload chooses, directly or through an expression.
std::set<std::string> variable_axes(const definition& def) {
  std::set<std::string> names;
  for (const auto& each : def.axes)
    if (each.kind == axis_kind::variable
      || (each.kind == axis_kind::expression && mentions(each.expression, names)))
      names.insert(each.name);
  return names;
}

result<std::vector<matrix>> float_matrices(const definition& def, const axis_values& resolved) {
  const auto variable = variable_axes(def);
  std::vector<matrix> all;
  for (const auto& spec : def.inputs) {
    if (spec.is_scalar || !is_float(spec.type) || spec.shape.size() < 2)
      continue;
    auto shape = resolve_shape(spec, resolved);
    if (!shape)
      return pass(shape);
    matrix one;
    one.spec = &spec;
    for (size_t d = 0; d < shape->size(); ++d) {
      const auto size = static_cast<uint64_t>((*shape)[d]);
      one.elements = saturating_product(one.elements, size);
      if (variable.contains(spec.shape[d])) {
        one.is_constant = false;
        one.variable = saturating_product(one.variable, size);
      }
    }
    one.shape = std::move(*shape);
    all.push_back(std::move(one));
  }
  return all;
}

/// Combinations of the axes of both, or 0 where they share none.
uint64_t combinations(const matrix& a, const matrix& b, const axis_values& resolved) {
  const std::set<std::string> names(a.spec->shape.begin(), a.spec->shape.end());
  uint64_t steps = a.elements;
  bool shared = false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const auto& name = b.spec->shape[d];
    if (names.contains(name) && find_axis_value(resolved, name) != nullptr)
      shared = true;
    else
      steps = saturating_product(steps, static_cast<uint64_t>(b.shape[d]));
  }
  return shared ? steps : 0;
}

} // namespace

result<uint64_t> expected_macs(const definition& def, const axis_values& resolved) {
  auto all = float_matrices(def, resolved);
  if (!all)
    return pass(all);
  uint64_t rows = 0;
  for (const auto& one : *all)
    if (!one.is_constant)
      rows = std::max(rows, one.variable);
  uint64_t sum = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    const auto& a = (*all)[i];
    if (a.is_constant) {
      sum = saturating_sum(sum, saturating_product(a.elements, rows));
      continue;
    }
    for (size_t j = i + 1; j < all->size(); ++j)
      if (!(*all)[j].is_constant)
        sum = saturating_sum(sum, combinations(a, (*all)[j], resolved));
  }
  return sum;
}

result<axis_values> shrink_axes(
  const definition& def, const workload& work, const twin_limits& limits) {
  auto own = measure(def, work.axes);
  if (!own)
    return pass(own);
  const room target{limits.elements, limits.macs};
  if (target.holds(*own))
    return std::move(own->resolved);
  for (const auto& input : work.inputs)
    if (input.kind == input_kind::safetensors && def.find_input(input.name) != nullptr)
      return fail(errc::unsupported,
        fmt::format("workload {}: {} elements, and it cannot be made smaller: input {} is a file "
                    "of fixed shape",
          work.uuid, own->elements, input.name));
  auto best = shrink_within(def, work, target, moduli);
  if (best && target.holds(*best))
    return std::move(best->resolved);
  const uint64_t given = elements_of_constants(def, work.axes);
  const room above{
    std::min(saturating_sum(given, limits.elements), limits.elements_hard), limits.macs};
  best = shrink_within(def, work, above, moduli_under_constants);
  if (!best)
    return pass(best);
  if (room{limits.elements_hard, limits.macs_hard}.holds(*best))
    return std::move(best->resolved);
  return fail(errc::refused,
    fmt::format("workload {}: {} elements and {} multiply-adds even with every variable axis at "
                "its smallest, above the limit of {} elements or of {} multiply-adds for a check",
      work.uuid, best->elements, best->macs, limits.elements_hard, limits.macs_hard));
}

result<axis_values> shrink_axes(
  const definition& def, const workload& work, uint64_t max_elements) {
  twin_limits limits;
  limits.elements = max_elements;
  // As many multiply-adds for each element as the usual target has.
  const twin_limits usual;
  const uint64_t macs = saturating_product(max_elements, usual.macs / usual.elements);
  limits.macs = std::max(usual.macs, macs);
  limits.macs_hard = std::max(usual.macs_hard, macs);
  if (max_elements == no_limit)
    limits.elements_hard = limits.macs = limits.macs_hard = no_limit;
  limits.elements_hard = std::max(limits.elements_hard, max_elements);
  return shrink_axes(def, work, limits);
}

} // namespace gristmill
