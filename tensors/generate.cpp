#include "tensors/generate.hpp"

#include "tensors/codec.hpp"
#include "tensors/elementary.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace gristmill {

namespace {

/// Elements at a time: the buffers below stay in the first-level cache.
constexpr size_t chunk = 1024;

void fill_words(const philox_stream& stream, uint64_t first, std::span<uint32_t> words) {
  uint64_t block = first / 4;
  auto lane = static_cast<size_t>(first % 4);
  for (size_t i = 0; i < words.size();) {
    const auto four = stream.block(block++);
    while (lane < 4 && i < words.size())
      words[i++] = four[lane++];
    lane = 0;
  }
}

/// Uniform in (0, 1).
double unit_from_word(uint32_t word) {
  return (static_cast<double>(word) + 0.5) * (1.0 / 4294967296.0);
}

template <class Function>
void transform(std::span<const uint32_t> words, std::span<float> out, Function function) {
  for (size_t i = 0; i < words.size(); ++i)
    out[i] = static_cast<float>(function(words[i]));
}

double clamped(double x, double lo, double hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

/// Values of the distributions whose elements know nothing of each other.
void fill_independent(const input_distribution& from, double last_dimension,
  std::span<const uint32_t> words, std::span<float> out) {
  using elementary::normal_quantile;
  switch (from.kind) {
  case distribution::normal:
  case distribution::fp4_normal: // Rounded by the encoder.
    return transform(words, out, normal_quantile);
  case distribution::clamped_normal:
    return transform(
      words, out, [&](uint32_t word) { return clamped(normal_quantile(word), from.lo, from.hi); });
  case distribution::scaled_normal: {
    const double scale = 1 / std::sqrt(last_dimension);
    return transform(words, out, [&](uint32_t word) { return normal_quantile(word) * scale; });
  }
  case distribution::positive:
    return transform(words, out, [](uint32_t word) {
      const double z = normal_quantile(word);
      return (z < 0 ? -z : z) + 0.1;
    });
  case distribution::cosine:
    return transform(words, out, [](uint32_t word) {
      return elementary::cos(clamped(normal_quantile(word), -elementary::pi, elementary::pi));
    });
  case distribution::sine:
    return transform(words, out, [](uint32_t word) {
      return elementary::sin(clamped(normal_quantile(word), -elementary::pi, elementary::pi));
    });
  case distribution::uniform_range:
    return transform(words, out,
      [&](uint32_t word) { return from.lo + (from.hi - from.lo) * unit_from_word(word); });
  case distribution::uniform_int: {
    const auto lo = static_cast<int64_t>(from.lo);
    const auto count = static_cast<uint64_t>(static_cast<int64_t>(from.hi) - lo + 1);
    // The high half of word * count: uniform for the powers of two that 5.3 asks for.
    return transform(words, out, [&](uint32_t word) {
      return static_cast<double>(lo + static_cast<int64_t>((word * count) >> 32));
    });
  }
  case distribution::zipf_int: {
    const double count = from.hi - from.lo + 1;
    const double scale = elementary::log(count + 1);
    return transform(words, out, [&](uint32_t word) {
      // (count + 1)^u lies in (1, count + 1), and its whole part is k with a chance of about 1 / k.
      const double place = std::floor(elementary::exp(unit_from_word(word) * scale));
      return from.lo + clamped(place - 1, 0, count - 1);
    });
  }
  case distribution::stretched_normal:
    return transform(words, out, [&](uint32_t word) { return normal_quantile(word) * from.lo; });
  case distribution::uniform_bool:
  case distribution::binary_mask:
    return transform(words, out, [](uint32_t word) { return word >> 31 != 0 ? 1.0 : 0.0; });
  case distribution::mostly_ones:
    return transform(words, out, [](uint32_t word) { return word >> 30 != 0 ? 1.0 : 0.0; });
  case distribution::ones:
    std::fill(out.begin(), out.end(), 1.0f);
    return;
  case distribution::zeros:
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  case distribution::causal_mask:
  case distribution::scattered_mask:
  case distribution::cumsum_negative:
  case distribution::softmax_rows:
  case distribution::constant_rows:
  case distribution::nan_rows:
    break;
  }
  assert(false && "a distribution with memory");
}

/// Calls `visit(index, word)` for the elements first..last-1.
template <class Visit>
void for_each_word(const philox_stream& stream, uint64_t first, uint64_t last, Visit visit) {
  std::array<uint32_t, chunk> words;
  while (first < last) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(chunk, last - first));
    fill_words(stream, first, {words.data(), count});
    for (size_t i = 0; i < count; ++i)
      visit(first + i, words[i]);
    first += count;
  }
}

/// Collects floats in the order of their elements and encodes them a chunk at a time.
class encoder {
public:
  encoder(dtype type, std::span<std::byte> out) : type_(type), out_(out) {}
  void push(float value) {
    values_[used_++] = value;
    if (used_ == chunk)
      flush();
  }
  void flush() {
    const auto bytes = static_cast<size_t>(used_ * element_bits(type_) / 8);
    encode_from_float(type_, {values_.data(), used_}, out_.first(bytes));
    out_ = out_.subspan(bytes);
    used_ = 0;
  }

private:
  dtype type_;
  std::span<std::byte> out_;
  std::array<float, chunk> values_;
  size_t used_ = 0;
};

void generate_cumsum(const input_distribution& from, const philox_stream& stream, uint64_t row,
  uint64_t first, uint64_t last, encoder& out) {
  double sum = 0;
  for_each_word(stream, first / row * row, last, [&](uint64_t index, uint32_t word) {
    if (index % row == 0)
      sum = 0;
    sum += from.lo + (from.hi - from.lo) * unit_from_word(word);
    if (index >= first)
      out.push(static_cast<float>(sum));
  });
}

void generate_softmax(
  const philox_stream& stream, uint64_t row, uint64_t first, uint64_t last, encoder& out) {
  using elementary::normal_quantile;
  for (uint64_t begin = first / row * row; begin < last; begin += row) {
    // Three walks over the row instead of a buffer as long as one. The quantile grows with its
    // word, so the largest word has the largest value.
    uint32_t largest = 0;
    for_each_word(stream, begin, begin + row,
      [&](uint64_t, uint32_t word) { largest = std::max(largest, word); });
    const double top = normal_quantile(largest);
    double sum = 0;
    for_each_word(stream, begin, begin + row,
      [&](uint64_t, uint32_t word) { sum += elementary::exp(normal_quantile(word) - top); });
    for_each_word(
      stream, std::max(begin, first), std::min(begin + row, last), [&](uint64_t, uint32_t word) {
        out.push(static_cast<float>(elementary::exp(normal_quantile(word) - top) / sum));
      });
  }
}

void generate_constant_rows(
  const philox_stream& stream, uint64_t row, uint64_t first, uint64_t last, encoder& out) {
  float value = 0;
  for (uint64_t element = first; element < last; ++element) {
    if (element == first || element % row == 0)
      value = static_cast<float>(elementary::normal_quantile(stream.block(element / row)[0]));
    out.push(value);
  }
}

/// Every eighth row has one, the first row too.
void generate_nan_rows(
  const philox_stream& stream, uint64_t row, uint64_t first, uint64_t last, encoder& out) {
  constexpr uint64_t rows_apart = 8;
  /// Behind every word of a tensor.
  constexpr uint64_t places = uint64_t{1} << 62;
  for_each_word(stream, first, last, [&](uint64_t index, uint32_t word) {
    const uint64_t which = index / row;
    const bool here =
      which % rows_apart == 0 && index % row == stream.block(places + which)[0] % row;
    out.push(here ? std::numeric_limits<float>::quiet_NaN()
                  : static_cast<float>(elementary::normal_quantile(word)));
  });
}

/// The lowest finite value of a type of at most 32 bits; all of them are floats.
float lowest_float(dtype type) {
  switch (type) {
  case dtype::float16:
    return -65504.0f;
  case dtype::bfloat16:
    return float_from_bf16(0xff7f);
  case dtype::float8_e4m3fn:
    return -448.0f;
  case dtype::float8_e5m2:
    return -57344.0f;
  default:
    return -3.4028234663852886e38f; // Saturates in the others.
  }
}

/// 0, or the type's lowest finite value where `is_masked(element)` says so, which is asked in
/// order.
template <class Predicate>
void generate_mask(
  dtype type, uint64_t first, uint64_t last, std::span<std::byte> out, Predicate is_masked) {
  if (type == dtype::float64) { // Its lowest value is beyond the floats that the encoder takes.
    for (size_t at = 0; first < last; ++first, at += sizeof(double)) {
      const double value = is_masked(first) ? -1.7976931348623157e308 : 0.0;
      std::memcpy(out.data() + at, &value, sizeof value);
    }
    return;
  }
  const float lowest = lowest_float(type);
  encoder encoded{type, out};
  for (; first < last; ++first)
    encoded.push(is_masked(first) ? lowest : 0.0f);
  encoded.flush();
}

void generate_causal(dtype type, uint64_t rows, uint64_t columns, uint64_t first, uint64_t last,
  std::span<std::byte> out) {
  generate_mask(type, first, last, out,
    [&](uint64_t element) { return element % columns > element / columns % rows; });
}

void generate_scattered(const philox_stream& stream, dtype type, uint64_t rows, uint64_t columns,
  uint64_t first, uint64_t last, std::span<std::byte> out) {
  philox_block block{};
  bool fresh = false;
  generate_mask(type, first, last, out, [&](uint64_t element) {
    if (!fresh || element % 4 == 0)
      block = stream.block(element / 4);
    fresh = true;
    return element % columns != element / columns % rows && block[element % 4] >> 31 != 0;
  });
}

} // namespace

float normal_from_word(uint32_t word) {
  return static_cast<float>(elementary::normal_quantile(word));
}

void generate(const input_distribution& kind, dtype type, const std::vector<int64_t>& shape,
  const tensor_key& key, uint64_t first_element, std::span<std::byte> out) {
  if (out.empty())
    return;
  const uint64_t bits = element_bits(type);
  assert(out.size() * 8 % bits == 0);
  assert(!is_packed(type) || first_element % 2 == 0);
  // A window is never empty here, so no dimension is zero; the guard is for a caller's mistake.
  const auto dimension = [&](size_t from_end) {
    return shape.size() >= from_end && shape[shape.size() - from_end] > 0
      ? static_cast<uint64_t>(shape[shape.size() - from_end])
      : uint64_t{1};
  };
  const uint64_t row = dimension(1);
  const uint64_t last = first_element + out.size() * 8 / bits;
  const philox_stream stream{key};
  encoder encoded{type, out};
  switch (kind.kind) {
  case distribution::causal_mask:
    return generate_causal(type, dimension(2), row, first_element, last, out);
  case distribution::scattered_mask:
    return generate_scattered(stream, type, dimension(2), row, first_element, last, out);
  case distribution::cumsum_negative:
    generate_cumsum(kind, stream, row, first_element, last, encoded);
    return encoded.flush();
  case distribution::softmax_rows:
    generate_softmax(stream, row, first_element, last, encoded);
    return encoded.flush();
  case distribution::constant_rows:
    generate_constant_rows(stream, row, first_element, last, encoded);
    return encoded.flush();
  case distribution::nan_rows:
    generate_nan_rows(stream, row, first_element, last, encoded);
    return encoded.flush();
  default:
    break;
  }
  const bool constant = kind.kind == distribution::ones || kind.kind == distribution::zeros;
  std::array<uint32_t, chunk> words{};
  std::array<float, chunk> values;
  for (uint64_t at = first_element; at < last;) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(chunk, last - at));
    if (!constant)
      fill_words(stream, at, {words.data(), count});
    fill_independent(kind, static_cast<double>(row), {words.data(), count}, {values.data(), count});
    const auto bytes = static_cast<size_t>(count * bits / 8);
    encode_from_float(type, {values.data(), count}, out.first(bytes));
    out = out.subspan(bytes);
    at += count;
  }
}

drawn_number generate_number(const input_distribution& kind, dtype type, const tensor_key& key) {
  std::array<std::byte, 8> content{};
  const std::vector<int64_t> shape =
    is_packed(type) ? std::vector<int64_t>{2} : std::vector<int64_t>{};
  const auto bytes = static_cast<size_t>(std::max<uint64_t>(1, element_bits(type) / 8));
  const auto out = std::span(content).first(bytes);
  generate(kind, type, shape, key, 0, out);
  drawn_number drawn;
  const auto whole = [&](auto stored) {
    std::memcpy(&stored, content.data(), sizeof stored);
    drawn.integer = stored;
    drawn.number = static_cast<double>(stored);
    drawn.is_integer = true;
    return drawn;
  };
  switch (type) {
  case dtype::int64:
    return whole(int64_t{});
  case dtype::int32:
    return whole(int32_t{});
  case dtype::int16:
    return whole(int16_t{});
  case dtype::int8:
  case dtype::boolean:
    return whole(int8_t{});
  case dtype::float64:
    std::memcpy(&drawn.number, content.data(), sizeof drawn.number);
    return drawn;
  default:
    break;
  }
  std::array<float, 2> values{};
  decode_to_float(type, out, std::span(values).first(is_packed(type) ? 2 : 1));
  drawn.number = static_cast<double>(values[0]);
  return drawn;
}

} // namespace gristmill
