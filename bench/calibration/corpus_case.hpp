#pragma once

// The kernels of tests/corpus/device_kernels, bound to sizes: what the harness on a GPU and the
// test on the mock both read. Standard library only, so that it builds where nothing but a CUDA
// toolkit is.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <istream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef __CUDACC__
#define CALIBRATION_BOTH __host__ __device__
#else
#define CALIBRATION_BOTH
#endif

namespace gristmill::calibration {

/// A buffer of a call. `fill` says how an input is drawn: "uniform s" (floats in [-s, s), integers
/// of any value), "below n" (integers), "ramp k" (element i is i k), "cycle" (links that visit
/// every element once).
struct case_buffer {
  enum class role { input, output, scratch };
  role kind = role::input;
  std::string name;
  std::string dtype;
  uint64_t bytes = 0;
  uint64_t elements = 0;
  /// Of inputs.
  std::string fill;
  double fill_value = 1;
  /// Of scratch: "undefined", "restored" or "zero".
  std::string init;
};

/// A tensor map over a buffer, sizes innermost first.
struct case_map {
  uint32_t buffer = 0;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> strides;
  std::vector<uint32_t> box;
  std::string swizzle;
  std::string l2;
};

struct case_argument {
  enum class what { buffer, bytes, map };
  what kind = what::buffer;
  uint32_t index = 0;
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
};

struct case_step {
  enum class op { launch, memset, copy };
  op kind = op::launch;
  std::string entry;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<case_argument> arguments;
  uint32_t buffer = 0, source = 0;
  uint64_t offset = 0, source_offset = 0, bytes = 0;
  uint32_t width = 1, value = 0;
};

/// One kernel at one size.
struct sized_case {
  std::map<std::string, int64_t> axes;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<case_buffer> buffers;
  std::vector<case_map> maps;
  std::vector<case_step> steps;

  /// Bytes of inputs and outputs together.
  uint64_t io_bytes() const {
    uint64_t sum = 0;
    for (const case_buffer& b : buffers)
      if (b.kind != case_buffer::role::scratch)
        sum += b.bytes;
    return sum;
  }
};

struct corpus_case {
  std::string name;
  std::string folder;
  std::string family;
  std::string kind;
  std::string reference;
  double atol = 0, rtol = 0;
  sized_case small, large;
};

/// Reads what `gristmill-bench-corpus resolve` wrote. Throws std::runtime_error naming the line.
inline std::vector<corpus_case> parse_corpus(std::istream& in) {
  std::vector<corpus_case> out;
  sized_case* now = nullptr;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#')
      continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "kernel") {
      corpus_case c;
      words >> c.name >> c.folder >> c.family >> c.kind >> c.reference >> c.atol >> c.rtol;
      out.push_back(std::move(c));
      now = nullptr;
    } else if (word == "size" && !out.empty()) {
      std::string which;
      words >> which;
      now = which == "small" ? &out.back().small : &out.back().large;
    } else if (now == nullptr) {
      throw std::runtime_error("line " + std::to_string(number) + ": no size above it");
    } else if (word == "axis") {
      std::string name;
      int64_t value = 0;
      words >> name >> value;
      now->axes[name] = value;
    } else if (word == "define") {
      std::pair<std::string, std::string> define;
      words >> define.first;
      std::getline(words >> std::ws, define.second);
      now->defines.push_back(std::move(define));
      words.clear();
    } else if (word == "input" || word == "output" || word == "scratch") {
      case_buffer b;
      b.kind = word == "input" ? case_buffer::role::input
        : word == "output"     ? case_buffer::role::output
                               : case_buffer::role::scratch;
      words >> b.name >> b.dtype >> b.bytes >> b.elements;
      if (b.kind == case_buffer::role::input)
        words >> b.fill >> b.fill_value;
      if (b.kind == case_buffer::role::scratch)
        words >> b.init;
      now->buffers.push_back(std::move(b));
    } else if (word == "map") {
      case_map m;
      size_t rank = 0;
      words >> m.buffer >> rank;
      m.sizes.resize(rank);
      m.strides.resize(rank - 1);
      m.box.resize(rank);
      for (auto& v : m.sizes)
        words >> v;
      for (auto& v : m.strides)
        words >> v;
      for (auto& v : m.box)
        words >> v;
      words >> m.swizzle >> m.l2;
      now->maps.push_back(std::move(m));
    } else if (word == "launch") {
      case_step s;
      words >> s.entry;
      for (uint32_t& v : s.grid)
        words >> v;
      for (uint32_t& v : s.block)
        words >> v;
      for (uint32_t& v : s.cluster)
        words >> v;
      words >> s.shared_bytes >> s.cooperative;
      now->steps.push_back(std::move(s));
    } else if (word == "memset" || word == "copy") {
      case_step s;
      s.kind = word == "memset" ? case_step::op::memset : case_step::op::copy;
      words >> s.buffer >> s.offset >> s.bytes;
      if (s.kind == case_step::op::memset)
        words >> s.width >> s.value;
      else
        words >> s.source >> s.source_offset;
      now->steps.push_back(std::move(s));
    } else if (word == "arg" && !now->steps.empty()) {
      case_argument a;
      std::string kind;
      words >> kind;
      if (kind == "buffer") {
        words >> a.index >> a.offset;
      } else if (kind == "map") {
        a.kind = case_argument::what::map;
        words >> a.index;
      } else {
        a.kind = case_argument::what::bytes;
        std::string hex;
        words >> hex;
        for (size_t i = 0; i + 1 < hex.size(); i += 2)
          a.bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
      }
      now->steps.back().arguments.push_back(std::move(a));
    } else {
      throw std::runtime_error("line " + std::to_string(number) + ": " + word + " is not known");
    }
    if (words.fail())
      throw std::runtime_error("line " + std::to_string(number) + " is incomplete");
  }
  return out;
}

/// 64 well-mixed bits of a place in a stream: the same on CPU and GPU, in any order.
CALIBRATION_BOTH inline uint64_t mixed(uint64_t stream, uint64_t place) {
  uint64_t v = (stream + 1) * 0x9e3779b97f4a7c15ULL + place * 0xbf58476d1ce4e5b9ULL;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ULL;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebULL;
  return v ^ (v >> 31);
}

enum class fill_kind : uint8_t { uniform, below, ramp, cycle };

inline fill_kind fill_of(const std::string& name) {
  if (name == "uniform")
    return fill_kind::uniform;
  if (name == "below")
    return fill_kind::below;
  if (name == "ramp")
    return fill_kind::ramp;
  if (name == "cycle")
    return fill_kind::cycle;
  throw std::runtime_error("fill " + name + " is not known");
}

CALIBRATION_BOTH inline float uniform_float(uint64_t bits, float scale) {
  return (static_cast<float>(static_cast<uint32_t>(bits >> 40)) / 8388608.0F - 1.0F) * scale;
}

/// Element `place` of an input of integers. A cycle has a power of two of elements.
CALIBRATION_BOTH inline int64_t integer_element(
  fill_kind fill, double value, uint64_t elements, uint64_t stream, uint64_t place) {
  switch (fill) {
  case fill_kind::below:
    return static_cast<int64_t>((mixed(stream, place) >> 16) % static_cast<uint64_t>(value));
  case fill_kind::ramp:
    return static_cast<int64_t>(place) * static_cast<int64_t>(value);
  case fill_kind::cycle:
    return static_cast<int64_t>((place * 1664525 + 1013904223) & (elements - 1));
  case fill_kind::uniform:
    break;
  }
  return static_cast<int64_t>(mixed(stream, place));
}

CALIBRATION_BOTH inline uint16_t bfloat16_bits(float f) {
  uint32_t bits = 0;
  memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Rounds a number below 65504 in size to half precision, by its bits.
CALIBRATION_BOTH inline uint16_t half_bits(float f) {
  uint32_t bits = 0;
  memcpy(&bits, &f, 4);
  const uint32_t sign = bits >> 16 & 0x8000U;
  const int32_t exponent = static_cast<int32_t>(bits >> 23 & 255) - 127;
  uint32_t fraction = bits & 0x7fffffU;
  if (exponent < -25)
    return static_cast<uint16_t>(sign);
  uint32_t shift = 13, base = static_cast<uint32_t>(exponent + 15) << 10;
  if (exponent < -14) {
    shift = static_cast<uint32_t>(13 - 14 - exponent);
    fraction |= 0x800000U;
    base = 0;
  }
  const uint32_t kept = fraction >> shift, rest = fraction & ((1U << shift) - 1);
  const uint32_t middle = 1U << (shift - 1);
  const uint32_t up = rest > middle || (rest == middle && (kept & 1) != 0) ? 1U : 0U;
  return static_cast<uint16_t>(sign | (base + kept + up));
}

inline double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double v = 0;
  if (exponent == 31)
    v = fraction == 0 ? INFINITY : NAN;
  else
    v = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -v : v;
}

/// Writes `count` elements from `first` on, as the input's dtype, to `to`.
CALIBRATION_BOTH inline void write_element(char dtype, uint8_t* to, fill_kind fill, double value,
  uint64_t elements, uint64_t stream, uint64_t place) {
  // 'f' float32, 'd' float64, 'h' float16, 'b' bfloat16, 'i' int32, 'l' int64, 'c' int8
  const auto scale = static_cast<float>(value);
  if (dtype == 'f') {
    const float v = uniform_float(mixed(stream, place), scale);
    memcpy(to + place * 4, &v, 4);
  } else if (dtype == 'd') {
    const double v = static_cast<double>(uniform_float(mixed(stream, place), scale));
    memcpy(to + place * 8, &v, 8);
  } else if (dtype == 'h' || dtype == 'b') {
    const float v = uniform_float(mixed(stream, place), scale);
    const uint16_t bits = dtype == 'h' ? half_bits(v) : bfloat16_bits(v);
    memcpy(to + place * 2, &bits, 2);
  } else {
    const int64_t v = integer_element(fill, value, elements, stream, place);
    if (dtype == 'i') {
      const auto narrow = static_cast<int32_t>(v);
      memcpy(to + place * 4, &narrow, 4);
    } else if (dtype == 'l') {
      memcpy(to + place * 8, &v, 8);
    } else {
      to[place] = static_cast<uint8_t>(v);
    }
  }
}

inline char letter_of(const std::string& dtype) {
  static const std::map<std::string, char> letters = {{"float32", 'f'}, {"float64", 'd'},
    {"float16", 'h'}, {"bfloat16", 'b'}, {"int32", 'i'}, {"int64", 'l'}, {"int8", 'c'}};
  const auto found = letters.find(dtype);
  if (found == letters.end())
    throw std::runtime_error("dtype " + dtype + " is not known");
  return found->second;
}

/// The first `count` elements of an input.
inline std::vector<uint8_t> drawn(const case_buffer& b, uint64_t stream, uint64_t count) {
  std::vector<uint8_t> bytes(b.bytes / b.elements * count);
  const char letter = letter_of(b.dtype);
  const fill_kind fill = fill_of(b.fill);
  for (uint64_t i = 0; i < count; ++i)
    write_element(letter, bytes.data(), fill, b.fill_value, b.elements, stream, i);
  return bytes;
}

/// Any of the dtypes as doubles.
inline std::vector<double> as_doubles(const std::string& dtype, const std::vector<uint8_t>& bytes) {
  const char letter = letter_of(dtype);
  const size_t width = letter == 'c' ? 1
    : letter == 'h' || letter == 'b' ? 2
    : letter == 'd' || letter == 'l' ? 8
                                     : 4;
  std::vector<double> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint8_t* from = bytes.data() + i * width;
    if (letter == 'f') {
      float v = 0;
      std::memcpy(&v, from, 4);
      out[i] = static_cast<double>(v);
    } else if (letter == 'd') {
      std::memcpy(&out[i], from, 8);
    } else if (letter == 'i') {
      int32_t v = 0;
      std::memcpy(&v, from, 4);
      out[i] = v;
    } else if (letter == 'l') {
      int64_t v = 0;
      std::memcpy(&v, from, 8);
      out[i] = static_cast<double>(v);
    } else if (letter == 'c') {
      out[i] = static_cast<int8_t>(*from);
    } else {
      uint16_t bits = 0;
      std::memcpy(&bits, from, 2);
      if (letter == 'h') {
        out[i] = half_value(bits);
      } else {
        const uint32_t wide = static_cast<uint32_t>(bits) << 16;
        float v = 0;
        std::memcpy(&v, &wide, 4);
        out[i] = static_cast<double>(v);
      }
    }
  }
  return out;
}

/// What a comparison found: the largest |got - want| over (atol + rtol |want|), at most 1 when all
/// is right.
struct largest_error {
  double worst = 0;
  uint64_t place = 0;
  double got = 0, want = 0;
  bool right() const { return worst <= 1; }
};

inline largest_error compare_numbers(
  const std::vector<double>& got, const std::vector<double>& want, double atol, double rtol) {
  largest_error out;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = atol + rtol * std::fabs(want[i]);
    const double error = std::fabs(got[i] - want[i]);
    double share = error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
    if (std::isnan(got[i]) || std::isnan(want[i]))
      share = INFINITY;
    if (share > out.worst)
      out = {share, i, got[i], want[i]};
  }
  return out;
}

} // namespace gristmill::calibration
