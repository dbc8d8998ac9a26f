#include "gpu/mock/ptx/bulk_reduce.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#define GRISTMILL_PTX_LANES reductions
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {
namespace {

struct half {
  uint16_t bits;
  static float load(half h) { return reductions::from_half(h.bits); }
  static half store(float f) { return {reductions::to_half(f)}; }
};
struct bfloat {
  uint16_t bits;
  static float load(bfloat h) { return reductions::from_bfloat(h.bits); }
  static bfloat store(float f) { return {reductions::to_bfloat(f)}; }
};

template <class T>
T combine_integers(bulk_reduction how, T a, T b) {
  using U = std::make_unsigned_t<T>;
  const U x = static_cast<U>(a);
  const U y = static_cast<U>(b);
  switch (how) {
  case bulk_reduction::add:
    return static_cast<T>(x + y);
  case bulk_reduction::min:
    return std::min(a, b);
  case bulk_reduction::max:
    return std::max(a, b);
  case bulk_reduction::inc:
    return static_cast<T>(x >= y ? U{0} : x + 1);
  case bulk_reduction::dec:
    return static_cast<T>(x == 0 || x > y ? y : x - 1);
  case bulk_reduction::bit_and:
    return static_cast<T>(x & y);
  case bulk_reduction::bit_or:
    return static_cast<T>(x | y);
  case bulk_reduction::bit_xor:
    break;
  }
  return static_cast<T>(x ^ y);
}

template <class F>
F combine_floats(bulk_reduction how, F a, F b) {
  return how == bulk_reduction::add ? reductions::settled(a + b)
    : how == bulk_reduction::min    ? reductions::smaller(a, b)
                                    : reductions::larger(a, b);
}

template <class T, class F>
void each(uint8_t* to, const uint8_t* from, uint64_t bytes, F&& combine) {
  for (uint64_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    a = combine(a, b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

template <class T>
void each_integer(bulk_reduction how, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  each<T>(to, from, bytes, [&](T a, T b) { return combine_integers(how, a, b); });
}

template <class T>
void each_float(bulk_reduction how, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  each<T>(to, from, bytes, [&](T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return combine_floats(how, a, b);
    else
      return T::store(combine_floats(how, T::load(a), T::load(b)));
  });
}

} // namespace

std::optional<bulk_reduction> bulk_reduction_of(std::string_view name) {
  constexpr std::string_view names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<bulk_reduction>(i);
  return std::nullopt;
}

std::optional<tensor_map_type> bulk_type_of(std::string_view name) {
  static constexpr std::pair<std::string_view, tensor_map_type> types[] = {
    {"u32", tensor_map_type::uint32}, {"b32", tensor_map_type::uint32},
    {"s32", tensor_map_type::int32}, {"u64", tensor_map_type::uint64},
    {"b64", tensor_map_type::uint64}, {"s64", tensor_map_type::int64},
    {"f16", tensor_map_type::float16}, {"bf16", tensor_map_type::bfloat16},
    {"f32", tensor_map_type::float32}, {"f64", tensor_map_type::float64}};
  for (const auto& [text, type] : types)
    if (text == name)
      return type;
  return std::nullopt;
}

bool reduction_exists(bulk_reduction how, tensor_map_type type) {
  const uint32_t bytes = bytes_of(type);
  switch (how) {
  case bulk_reduction::add:
    return is_floating(type) || bytes >= 4;
  case bulk_reduction::min:
  case bulk_reduction::max:
    return is_floating(type) ? bytes == 2 : bytes >= 4;
  case bulk_reduction::inc:
  case bulk_reduction::dec:
    return type == tensor_map_type::uint32;
  case bulk_reduction::bit_and:
  case bulk_reduction::bit_or:
  case bulk_reduction::bit_xor:
    return !is_floating(type) && bytes >= 4;
  }
  return false;
}

void reduce_bytes(
  bulk_reduction how, tensor_map_type type, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  switch (type) {
  case tensor_map_type::uint32:
    return each_integer<uint32_t>(how, to, from, bytes);
  case tensor_map_type::int32:
    return each_integer<int32_t>(how, to, from, bytes);
  case tensor_map_type::uint64:
    return each_integer<uint64_t>(how, to, from, bytes);
  case tensor_map_type::int64:
    return each_integer<int64_t>(how, to, from, bytes);
  case tensor_map_type::float16:
    return each_float<half>(how, to, from, bytes);
  case tensor_map_type::bfloat16:
    return each_float<bfloat>(how, to, from, bytes);
  case tensor_map_type::float32:
  case tensor_map_type::float32_ftz:
  case tensor_map_type::tfloat32:
  case tensor_map_type::tfloat32_ftz:
    return each_float<float>(how, to, from, bytes);
  case tensor_map_type::float64:
    return each_float<double>(how, to, from, bytes);
  case tensor_map_type::uint8:
  case tensor_map_type::uint16:
    break;
  }
}

} // namespace gristmill::ptx
