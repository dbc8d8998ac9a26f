#include "tensors/compare.hpp"

#include "tensors/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace gristmill {

namespace {

/// Even, so that a chunk of a packed type is whole bytes.
constexpr size_t chunk = 16384;

/// The tensor as rows x columns, and the tile that an element falls into.
class tile_map {
public:
  tile_map(const std::vector<int64_t>& shape, uint64_t elements)
    : columns_(shape.empty() ? 1 : static_cast<uint64_t>(shape.back())),
      rows_(columns_ == 0 ? 0 : elements / columns_) {}

  size_t tile(uint64_t element) const {
    return static_cast<size_t>(
      part(element / columns_, rows_) * 8 + part(element % columns_, columns_));
  }

private:
  // In 128 bits: eight times a dimension may not fit in 64.
  static uint64_t part(uint64_t position, uint64_t size) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(position) * 8 / size);
  }

  uint64_t columns_;
  uint64_t rows_;
};

/// The largest value so far; a NaN stays, as in the framework's maximum.
float larger(float a, float b) {
  if (a != a)
    return a;
  return b > a || b != b ? b : a;
}

class accumulator {
public:
  accumulator(const tolerance& allowed, const tile_map& tiles, comparison& out)
    : allowed_(allowed), atol_(static_cast<float>(allowed.atol)),
      rtol_(static_cast<float>(allowed.rtol)), tiles_(tiles), out_(out) {}

  void add(uint64_t element, float x, float y) {
    if (!std::isfinite(x) || !std::isfinite(y)) {
      const float negative_infinity = -std::numeric_limits<float>::infinity();
      if (allowed_.allow_negative_inf && x == negative_infinity && y == negative_infinity)
        return;
      any_nan_ = any_nan_ || x != x || y != y;
      any_inf_ = any_inf_ || std::isinf(x) || std::isinf(y);
      ++out_.elements;
      miss(element);
      return;
    }
    ++out_.elements;
    any_nonzero_ = any_nonzero_ || x != 0;
    const float difference = std::fabs(x - y);
    const float magnitude = std::fabs(y);
    reference_squares_ += static_cast<double>(y) * static_cast<double>(y);
    if (!std::isfinite(difference) || difference > atol_ + rtol_ * magnitude)
      miss(element);
    absolute_ = larger(absolute_, difference);
    relative_ = larger(relative_, difference / (magnitude > atol_ ? magnitude : atol_));
  }

  void finish() {
    if (out_.elements == 0) {
      out_.matched_ratio = 1;
      out_.passed = true;
      return;
    }
    out_.matched_ratio = std::clamp(
      1 - static_cast<double>(out_.mismatches) / static_cast<double>(out_.elements), 0.0, 1.0);
    if (any_nan_ || any_inf_) {
      out_.has_nan = any_nan_;
      out_.has_inf = !any_nan_;
      return;
    }
    if (!any_nonzero_ && reference_squares_ > 0) {
      out_.all_zero_output = true;
      // A float's precision, because that is what the rule computes in.
      const auto norm = static_cast<float>(std::sqrt(reference_squares_));
      out_.max_absolute_error = norm;
      out_.max_relative_error = norm;
      return;
    }
    out_.max_absolute_error = absolute_;
    out_.max_relative_error = relative_;
    const bool capped = allowed_.error_cap && out_.max_absolute_error > *allowed_.error_cap;
    out_.passed = out_.matched_ratio >= allowed_.matched_ratio && !capped;
  }

private:
  void miss(uint64_t element) {
    ++out_.mismatches;
    auto& count = out_.miss_tiles[tiles_.tile(element)];
    if (count != std::numeric_limits<uint32_t>::max())
      ++count;
  }

  const tolerance& allowed_;
  float atol_;
  float rtol_;
  const tile_map& tiles_;
  comparison& out_;
  bool any_nan_ = false;
  bool any_inf_ = false;
  bool any_nonzero_ = false;
  float absolute_ = 0;
  float relative_ = 0;
  double reference_squares_ = 0;
};

bool integers_differ(
  dtype type, std::span<const std::byte> solution, std::span<const std::byte> reference) {
  if (type != dtype::boolean)
    return std::memcmp(solution.data(), reference.data(), solution.size()) != 0;
  // Any byte but zero is true: 1 and 255 are the same answer.
  for (size_t i = 0; i < solution.size(); ++i)
    if ((solution[i] != std::byte{0}) != (reference[i] != std::byte{0}))
      return true;
  return false;
}

} // namespace

comparison compare(dtype type, const std::vector<int64_t>& shape,
  std::span<const std::byte> solution, std::span<const std::byte> reference,
  const tolerance& allowed) {
  comparison out;
  const auto bytes = storage_bytes(type, shape);
  if (!bytes || solution.size() != *bytes || reference.size() != *bytes)
    return out;
  const uint64_t elements = *bytes * 8 / element_bits(type);
  const tile_map tiles{shape, elements};
  accumulator sums{allowed, tiles, out};
  if (!is_float(type) && elements > 0)
    out.integer_exact_mismatch = integers_differ(type, solution, reference);
  std::vector<float> x(static_cast<size_t>(std::min<uint64_t>(chunk, elements)));
  std::vector<float> y(x.size());
  for (uint64_t first = 0; first < elements;) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(chunk, elements - first));
    const auto from = static_cast<size_t>(first * element_bits(type) / 8);
    const auto size = static_cast<size_t>(count * element_bits(type) / 8);
    decode_to_float(type, solution.subspan(from, size), {x.data(), count});
    decode_to_float(type, reference.subspan(from, size), {y.data(), count});
    for (size_t i = 0; i < count; ++i)
      sums.add(first + i, x[i], y[i]);
    first += count;
  }
  sums.finish();
  return out;
}

} // namespace gristmill
