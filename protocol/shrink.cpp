#include "protocol/shrink.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// An axis is kept modulo the first of these that makes the workload small enough: the larger, the
/// more tiles, vector widths and their remainders behave as in the original.
constexpr int64_t moduli[] = {64, 16, 8};

/// The smallest value that an axis may be reduced to.
int64_t floor_of(int64_t value, int64_t modulus) {
  return value < 2 * modulus ? value : modulus + value % modulus;
}

struct candidate {
  axis_values resolved;
  uint64_t elements = 0;
};

result<candidate> measure(const definition& def, const axis_values& workload_axes) {
  auto resolved = resolve_axes(def, workload_axes);
  if (!resolved)
    return pass(resolved);
  auto elements = workload_elements(def, *resolved);
  if (!elements)
    return pass(elements);
  return candidate{std::move(*resolved), *elements};
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

/// The twin with every axis kept modulo that, or the smallest there is, which is too big.
result<candidate> shrink_modulo(
  const definition& def, const workload& work, uint64_t max_elements, int64_t modulus) {
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
      if (!tried || tried->elements > max_elements)
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

} // namespace

result<axis_values> shrink_axes(
  const definition& def, const workload& work, uint64_t max_elements) {
  auto best = measure(def, work.axes);
  if (!best)
    return pass(best);
  if (best->elements <= max_elements)
    return std::move(best->resolved);
  for (const auto& input : work.inputs)
    if (input.kind == input_kind::safetensors && def.find_input(input.name) != nullptr)
      return fail(errc::unsupported,
        fmt::format("workload {}: {} elements, and it cannot be made smaller: input {} is a file "
                    "of fixed shape",
          work.uuid, best->elements, input.name));
  for (int64_t modulus : moduli) {
    best = shrink_modulo(def, work, max_elements, modulus);
    if (best && best->elements <= max_elements)
      return std::move(best->resolved);
  }
  if (!best)
    return pass(best);
  return fail(errc::refused,
    fmt::format("workload {}: {} elements even with every variable axis at its smallest, above "
                "the limit of {}",
      work.uuid, best->elements, max_elements));
}

} // namespace gristmill
