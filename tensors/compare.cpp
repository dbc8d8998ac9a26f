#include "tensors/compare.hpp"

#include "tensors/codec.hpp"
#include "tensors/ulp_histogram.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gristmill {

namespace {

/// Even, so that a chunk of a packed type is whole bytes; both decoded chunks stay in the
/// first-level cache.
constexpr size_t chunk = 2048;
constexpr uint64_t progress_bytes = uint64_t{16} << 20;

// Four floats at a time, in the compiler's own vector types: the same operations in the same order
// in every build, and fast without any flag.
using floats4 = float __attribute__((vector_size(16)));
using ints4 = int32_t __attribute__((vector_size(16)));
constexpr size_t lanes = 4;

constexpr int32_t magnitude_bits = 0x7fffffff;
constexpr int32_t infinity_bits = 0x7f800000;

/// The tensor as rows x columns, cut into 8 x 8 tiles.
class tile_map {
public:
  tile_map(const std::vector<int64_t>& shape, uint64_t elements)
    : columns_(shape.empty() ? 1 : static_cast<uint64_t>(shape.back())),
      rows_(columns_ == 0 ? 0 : elements / columns_) {
    for (uint64_t i = 0; i <= 8; ++i) {
      column_begin_[i] = begin_of(i, columns_);
      row_begin_[i] = begin_of(i, rows_);
    }
  }

  /// Goes from element to element and knows the tile: no division on the way.
  class cursor {
  public:
    cursor(const tile_map& map, uint64_t element)
      : map_(map), row_(element / map.columns_), column_(element % map.columns_) {
      settle();
    }
    size_t tile() const { return tile_row_ * 8 + tile_column_; }
    void next() {
      if (++column_ == map_.columns_) {
        column_ = 0;
        tile_column_ = 0;
        ++row_;
      }
      settle();
    }

  private:
    void settle() {
      while (tile_column_ < 7 && column_ >= map_.column_begin_[tile_column_ + 1])
        ++tile_column_;
      while (tile_row_ < 7 && row_ >= map_.row_begin_[tile_row_ + 1])
        ++tile_row_;
    }
    const tile_map& map_;
    uint64_t row_;
    uint64_t column_;
    size_t tile_row_ = 0;
    size_t tile_column_ = 0;
  };

private:
  /// The first position p with p * 8 / size >= i. In 128 bits: it may not fit in 64.
  static uint64_t begin_of(uint64_t i, uint64_t size) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * size + 7) / 8);
  }

  uint64_t columns_;
  uint64_t rows_;
  std::array<uint64_t, 9> column_begin_{};
  std::array<uint64_t, 9> row_begin_{};
};

/// What is known of a run of elements. The errors mean something only when all are finite.
struct chunk_sums {
  bool all_finite = true;
  bool any_nonzero = false;
  /// Bits of floats without sign, whose order as integers is the order of the values, with infinity
  /// and then NaN on top.
  int32_t absolute = 0;
  int32_t relative = 0;
  uint64_t misses = 0;
  /// In a float's precision: enough for a mean, but not always its range.
  float error_squares = 0;
  float size_squares = 0;
};

int32_t magnitude(float value) {
  return std::bit_cast<int32_t>(value) & magnitude_bits;
}

struct limits {
  float atol;
  float rtol;

  float of(float y) const { return atol + rtol * std::fabs(y); }
  /// The rule's third step for one pair of finite numbers.
  bool misses(float x, float y) const {
    const float difference = std::fabs(x - y);
    return !std::isfinite(difference) || difference > of(y);
  }
  float relative(float x, float y) const {
    const float size = std::fabs(y);
    return std::fabs(x - y) / (size > atol ? size : atol);
  }
};

float float_at(const std::byte* from, size_t index) {
  float value = 0;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return value;
}

floats4 load(const std::byte* from) {
  floats4 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

ints4 bits_of(floats4 value) {
  ints4 bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

floats4 floats_of(ints4 bits) {
  floats4 value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

floats4 absolute_of(floats4 value) {
  return floats_of(bits_of(value) & magnitude_bits);
}

int32_t largest_lane(ints4 value) {
  return std::max(std::max(value[0], value[1]), std::max(value[2], value[3]));
}

floats4 all_lanes(float value) {
  return floats4{value, value, value, value};
}

/// The sums over a chunk. `may_divide_zero`: the relative error may be 0 / 0, which is NaN and
/// stays.
template <bool may_divide_zero>
chunk_sums sum_chunk(const std::byte* x, const std::byte* y, size_t count, const limits& allowed) {
  const floats4 atol = all_lanes(allowed.atol);
  const floats4 rtol = all_lanes(allowed.rtol);
  floats4 poison{}; // Zero, and NaN for good after the first number that is not finite.
  floats4 absolute{};
  floats4 relative{};
  ints4 relative_bits{};
  ints4 nonzero{};
  ints4 misses{};
  floats4 error_squares{};
  floats4 size_squares{};
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const floats4 a = load(x + i * sizeof(float));
    const floats4 b = load(y + i * sizeof(float));
    const floats4 difference = absolute_of(a - b);
    const floats4 size = absolute_of(b);
    poison += a * 0.0f + b * 0.0f;
    nonzero |= bits_of(a);
    // An infinite difference misses whatever the bound, which may be infinite too.
    misses -= (difference > atol + rtol * size) | (bits_of(difference) >= infinity_bits);
    absolute = difference > absolute ? difference : absolute;
    error_squares += difference * difference;
    size_squares += size * size;
    const floats4 error = difference / (size > atol ? size : atol);
    if constexpr (may_divide_zero) {
      const ints4 bits = bits_of(error) & magnitude_bits;
      relative_bits = bits > relative_bits ? bits : relative_bits;
    } else {
      relative = error > relative ? error : relative;
    }
  }
  chunk_sums sums;
  for (size_t lane = 0; lane < lanes; ++lane) {
    sums.all_finite = sums.all_finite && poison[lane] == 0;
    sums.any_nonzero = sums.any_nonzero || (nonzero[lane] & magnitude_bits) != 0;
    sums.misses += static_cast<uint64_t>(misses[lane]);
    sums.error_squares += error_squares[lane];
    sums.size_squares += size_squares[lane];
  }
  sums.absolute = largest_lane(bits_of(absolute));
  sums.relative = largest_lane(may_divide_zero ? relative_bits : bits_of(relative));
  for (; i < count; ++i) {
    const float a = float_at(x, i);
    const float b = float_at(y, i);
    sums.all_finite = sums.all_finite && std::isfinite(a) && std::isfinite(b);
    sums.any_nonzero = sums.any_nonzero || a != 0;
    sums.absolute = std::max(sums.absolute, magnitude(a - b));
    sums.relative = std::max(sums.relative, magnitude(allowed.relative(a, b)));
    sums.misses += allowed.misses(a, b) ? 1 : 0;
    sums.error_squares += (a - b) * (a - b);
    sums.size_squares += b * b;
  }
  return sums;
}

/// Whether a float's range held a sum of squares well enough: none vanished or overflowed.
bool is_in_range(float squares) {
  return squares > 1e-20f && squares < 1e30f;
}

class accumulator {
public:
  accumulator(const tolerance& allowed, const tile_map& tiles, comparison& out)
    : allowed_(allowed), limits_{static_cast<float>(allowed.atol),
                           static_cast<float>(allowed.rtol)},
      tiles_(tiles), out_(out) {}

  /// `count` floats of either, which are the elements from `first` on.
  /// Whether all were finite.
  bool add(uint64_t first, const std::byte* x, const std::byte* y, size_t count) {
    const auto sums = limits_.atol > 0 ? sum_chunk<false>(x, y, count, limits_)
                                       : sum_chunk<true>(x, y, count, limits_);
    if (!sums.all_finite) {
      add_one_by_one(first, x, y, count);
      return false;
    }
    out_.elements += count;
    note(sums.any_nonzero, sums.absolute, sums.relative);
    if (is_in_range(sums.size_squares) && (sums.absolute == 0 || is_in_range(sums.error_squares))) {
      error_squares_ += static_cast<double>(sums.error_squares);
      size_squares_ += static_cast<double>(sums.size_squares);
    } else {
      for (size_t i = 0; i < count; ++i)
        add_squares(float_at(x, i), float_at(y, i));
    }
    if (sums.misses == 0)
      return true;
    tile_map::cursor at{tiles_, first};
    for (size_t i = 0; i < count; ++i, at.next())
      if (limits_.misses(float_at(x, i), float_at(y, i)))
        miss(at.tile());
    return true;
  }

  /// True when the verdict depends on whether the reference is all zero too.
  bool needs_reference_norm() const {
    return !any_nan_ && !any_inf_ && out_.elements > 0 && !any_nonzero_;
  }

  void finish(double reference_squares) {
    if (error_squares_ > 0)
      out_.relative_rms_error = size_squares_ > 0 ? std::sqrt(error_squares_ / size_squares_)
                                                  : std::numeric_limits<double>::infinity();
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
    if (!any_nonzero_ && reference_squares > 0) {
      out_.all_zero_output = true;
      // A float's precision, because that is what the rule computes in.
      const auto norm = static_cast<float>(std::sqrt(reference_squares));
      out_.max_absolute_error = norm;
      out_.max_relative_error = norm;
      return;
    }
    out_.max_absolute_error = std::bit_cast<float>(absolute_);
    out_.max_relative_error = std::bit_cast<float>(relative_);
    const bool capped = allowed_.error_cap && out_.max_absolute_error > *allowed_.error_cap;
    out_.passed = out_.matched_ratio >= allowed_.matched_ratio && !capped;
  }

  bool any_difference() const { return absolute_ != 0; }

private:
  void add_one_by_one(uint64_t first, const std::byte* x, const std::byte* y, size_t count) {
    constexpr float negative_infinity = -std::numeric_limits<float>::infinity();
    tile_map::cursor at{tiles_, first};
    for (size_t i = 0; i < count; ++i, at.next()) {
      const float a = float_at(x, i);
      const float b = float_at(y, i);
      if (std::isfinite(a) && std::isfinite(b)) {
        ++out_.elements;
        add_squares(a, b);
        note(a != 0, magnitude(a - b), magnitude(limits_.relative(a, b)));
        if (limits_.misses(a, b))
          miss(at.tile());
        continue;
      }
      if (allowed_.allow_negative_inf && a == negative_infinity && b == negative_infinity)
        continue;
      any_nan_ = any_nan_ || a != a || b != b;
      any_inf_ = any_inf_ || std::isinf(a) || std::isinf(b);
      ++out_.elements;
      miss(at.tile());
    }
  }

  void add_squares(float x, float y) {
    const double error = static_cast<double>(x) - static_cast<double>(y);
    error_squares_ += error * error;
    size_squares_ += static_cast<double>(y) * static_cast<double>(y);
  }

  void note(bool any_nonzero, int32_t absolute, int32_t relative) {
    any_nonzero_ = any_nonzero_ || any_nonzero;
    absolute_ = std::max(absolute_, absolute);
    relative_ = std::max(relative_, relative);
  }

  void miss(size_t tile) {
    ++out_.mismatches;
    auto& count = out_.miss_tiles[tile];
    if (count != std::numeric_limits<uint32_t>::max())
      ++count;
  }

  const tolerance& allowed_;
  limits limits_;
  const tile_map& tiles_;
  comparison& out_;
  bool any_nan_ = false;
  bool any_inf_ = false;
  bool any_nonzero_ = false;
  int32_t absolute_ = 0;
  int32_t relative_ = 0;
  double error_squares_ = 0;
  double size_squares_ = 0;
};

/// Walks over tensors of one type a chunk at a time.
class chunks {
public:
  chunks(dtype type, uint64_t elements, const compare_progress& progress)
    : type_(type), elements_(elements), progress_(progress) {}

  /// Calls `visit(first element, count, byte offset, bytes)`.
  template <class Visit>
  void each(Visit visit) const {
    const uint64_t bits = element_bits(type_);
    uint64_t told = 0;
    for (uint64_t first = 0; first < elements_;) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(chunk, elements_ - first));
      const uint64_t from = first * bits / 8;
      const uint64_t size = count * bits / 8;
      visit(first, count, static_cast<size_t>(from), static_cast<size_t>(size));
      first += count;
      if (progress_ && (from + size - told >= progress_bytes || first == elements_))
        progress_(told = from + size);
    }
  }

private:
  dtype type_;
  uint64_t elements_;
  const compare_progress& progress_;
};

/// The floats of a part of a tensor: in place where they lie there, else decoded into `room`.
const std::byte* floats_in(dtype type, std::span<const std::byte> part, std::span<float> room) {
  if (type == dtype::float32)
    return part.data();
  decode_to_float(type, part, room);
  return std::as_bytes(room).data();
}

/// Whether equal bytes and equal values are the same, and float32 may not see the difference.
bool is_wide_integer(dtype type) {
  return type == dtype::int64 || type == dtype::int32;
}

} // namespace

comparison compare(dtype type, const std::vector<int64_t>& shape,
  std::span<const std::byte> solution, std::span<const std::byte> reference,
  const tolerance& allowed, const compare_progress& progress) {
  comparison out;
  const auto bytes = storage_bytes(type, shape);
  if (!bytes || solution.size() != *bytes || reference.size() != *bytes)
    return out;
  const uint64_t elements = *bytes * 8 / element_bits(type);
  const tile_map tiles{shape, elements};
  accumulator sums{allowed, tiles, out};
  std::array<float, chunk> x;
  std::array<float, chunk> y;
  const chunks all{type, elements, progress};
  ulp_histogram ulps{type};
  all.each([&](uint64_t first, size_t count, size_t from, size_t size) {
    const auto a = solution.subspan(from, size);
    const auto b = reference.subspan(from, size);
    const bool all_finite = sums.add(first, floats_in(type, a, std::span(x).first(count)),
      floats_in(type, b, std::span(y).first(count)), count);
    ulps.add(a, b, all_finite);
    if (is_wide_integer(type) && !out.integer_exact_mismatch)
      out.integer_exact_mismatch = std::memcmp(a.data(), b.data(), size) != 0;
  });
  // A float32 tells all values of the narrow integers and of bool apart.
  if (!is_float(type) && !is_wide_integer(type))
    out.integer_exact_mismatch = sums.any_difference();
  double squares = 0;
  if (sums.needs_reference_norm())
    all.each([&](uint64_t, size_t count, size_t from, size_t size) {
      const auto* b = floats_in(type, reference.subspan(from, size), std::span(y).first(count));
      for (size_t i = 0; i < count; ++i) {
        const float value = float_at(b, i);
        // Elements that are exempt are infinite; there are no others here. Each square has a
        // float's range, as in the rule: it may vanish, and it may be infinite.
        squares += std::isfinite(value) ? static_cast<double>(value * value) : 0;
      }
    });
  sums.finish(squares);
  out.ulp_bins = ulps.bins();
  return out;
}

} // namespace gristmill
