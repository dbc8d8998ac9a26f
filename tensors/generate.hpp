#pragma once

#include "tensors/dtype.hpp"
#include "tensors/philox.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gristmill {

/// How the values of an input are drawn (specification 5.3).
enum class distribution : uint8_t {
  /// Standard normal.
  normal,
  /// Uniform over the integers lo..hi, both included.
  uniform_int,
  uniform_bool,
  ones,
  zeros,
  /// 0 on and below the diagonal of the last two dimensions, the type's lowest finite value above.
  causal_mask,
  /// 0 or 1 with equal chance.
  binary_mask,
  /// Cosine and sine of a standard normal that is clamped to [-pi, pi].
  cosine,
  sine,
  /// |normal| + 0.1.
  positive,
  /// Running sum along the last dimension of uniform values in [-0.1, 0).
  cumsum_negative,
  /// Uniform in [lo, hi).
  uniform_range,
  /// Softmax along the last dimension of standard normals.
  softmax_rows,
  /// Standard normal divided by the square root of the last dimension.
  scaled_normal,
  /// Standard normal clamped to [lo, hi].
  clamped_normal,
  /// Standard normal rounded to E2M1.
  fp4_normal,
  /// Held-out form of a causal mask: 0 on the diagonal of the last two dimensions, elsewhere 0 or
  /// the
  /// type's lowest finite value with equal chance.
  scattered_mask,
  /// Held-out form of a binary mask: 1 with a chance of 3/4, else 0.
  mostly_ones,
  /// Held-out form of integers: Zipf's law with exponent 1 over lo..hi, the lowest the most often.
  zipf_int,
  /// Standard normal times lo.
  stretched_normal,
  /// A standard normal for each row of the last dimension, the same in the whole row.
  constant_rows,
  /// Standard normal, with one NaN somewhere in every eighth row of the last dimension.
  nan_rows,
};

/// How the inputs of one case are drawn.
enum class input_style : uint8_t {
  /// As a benchmark draws them.
  standard = 0,
  /// Nothing is constant or known beforehand: weights and biases of norms are uniform around their
  /// usual constant, masks are neither causal nor balanced, integers follow Zipf's law.
  held_out,
  // The same, and where the standard one is a plain normal:
  /// values of 1/4096 their usual size: a term such as the epsilon of a norm is no longer small;
  tiny,
  /// of 32 times their usual size: e^x overflows a float32 unless the maximum is taken off;
  large,
  /// rows without any spread: a variance is 0, a softmax is flat;
  constant_rows,
  /// rows with a NaN, which must come through where the reference lets it through.
  nan_rows,
};

/// "standard", "held-out", "tiny", "large", "constant rows", "NaN rows".
std::string_view to_string(input_style style);

struct input_distribution {
  distribution kind = distribution::normal;
  double lo = 0;
  double hi = 0;

  friend bool operator==(const input_distribution&, const input_distribution&) = default;
};

/// The heuristics of the specification 5.3 over name, description and shape, in their order; first
/// match wins. Descriptions are compared without regard to case, names with. float64, which the
/// official evaluator cannot draw without a heuristic, is a standard normal here.
input_distribution choose_distribution(std::string_view name, std::string_view description,
  dtype type, const std::vector<int64_t>& shape, std::string_view op_type);

/// What the same input is drawn from in a case of another style, which is for a candidate to prove
/// that it learnt no constants of the standard heuristics and no habits of normal numbers. Norm
/// weights become uniform in [0.5, 1.5), norm biases in [-0.5, 0.5). What has no other form in the
/// style is drawn as in `choose_distribution`; narrow floats have none but `held_out`.
input_distribution choose_distribution_in(input_style style, std::string_view name,
  std::string_view description, dtype type, const std::vector<int64_t>& shape,
  std::string_view op_type);

/// Fills `out` with the elements `first_element`, `first_element + 1`, ... of the tensor that
/// (distribution, type, shape, key) defines; as many as `out` holds.
///
/// Any window gives the same bytes as the same place of the whole tensor, so the first few
/// megabytes of a huge input are simply the window at 0. `cumsum_negative` and `softmax_rows` walk
/// the whole row that a window begins in. A packed type needs an even `first_element`.
///
/// The bytes are the same in every build and on every machine: no function of the mathematical
/// library takes part, except the exactly rounded square root.
void generate(const input_distribution& kind, dtype type, const std::vector<int64_t>& shape,
  const tensor_key& key, uint64_t first_element, std::span<std::byte> out);

/// One value for an input that is a Python number, not a tensor.
struct drawn_number {
  double number = 0;
  /// Of integers and bools, exact.
  int64_t integer = 0;
  bool is_integer = false;

  friend bool operator==(const drawn_number&, const drawn_number&) = default;
};

/// The only element of a 0-dimensional tensor, drawn as any other, as a number. Of a packed type
/// the first of a pair.
drawn_number generate_number(const input_distribution& kind, dtype type, const tensor_key& key);

/// The normal transform by itself: the quantile of (word + 1/2) / 2^32, good to about 1e-7
/// relative, symmetric in its sign. For tests and for those who need one normal.
float normal_from_word(uint32_t word);

} // namespace gristmill
