#include "gpu/mock/ptx/matrix_shapes.hpp"

#include <algorithm>

#define GRISTMILL_PTX_LANES products
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {
namespace {

constexpr uint32_t outer_max = 32;
constexpr uint32_t depth_max = 64;

/// Element j of a register, as a number of V.
template <class V>
V element_of(element_type type, uint32_t word, uint32_t j);

template <>
float element_of<float>(element_type type, uint32_t word, uint32_t j) {
  switch (type) {
  case element_type::f16:
    return products::from_half(static_cast<uint16_t>(word >> (16 * j)));
  case element_type::bf16:
    return products::from_bfloat(static_cast<uint16_t>(word >> (16 * j)));
  case element_type::e4m3:
  case element_type::e5m2:
    return float8_numbers(type)[word >> (8 * j) & 255];
  default:
    // The unit for tf32 does not look at the lowest 13 bits.
    return products::from_bits(word & 0xffffe000);
  }
}

template <>
int32_t element_of<int32_t>(element_type type, uint32_t word, uint32_t j) {
  switch (type) {
  case element_type::s8:
    return static_cast<int8_t>(word >> (8 * j));
  case element_type::u8:
    return static_cast<uint8_t>(word >> (8 * j));
  case element_type::s4:
    return static_cast<int32_t>(word << (28 - 4 * j)) >> 28;
  case element_type::u4:
    return static_cast<int32_t>(word >> (4 * j) & 15);
  default:
    return static_cast<int32_t>(word);
  }
}

struct single {
  using value = float;
  using sum = float;
  static void add(sum& c, value a, value b, uint8_t) { c += a * b; }
};
struct whole {
  using value = int32_t;
  using sum = int64_t;
  static void add(sum& c, value a, value b, uint8_t) { c += int64_t{a} * b; }
};
/// A word holds 32 elements.
struct bit {
  using value = int32_t;
  using sum = int64_t;
  static void add(sum& c, value a, value b, uint8_t flags) {
    const auto x = static_cast<uint32_t>(a);
    const auto y = static_cast<uint32_t>(b);
    c += lanes_in(flags & matrix_and ? x & y : x ^ y);
  }
};
struct twice {
  using value = double;
  using sum = double;
  static void add(sum& c, value a, value b, uint8_t) { c = products::fused(a, b, c); }
};

/// Where the registers of each matrix begin in `list`.
struct registers {
  const uint32_t* d;
  const uint32_t* a;
  const uint32_t* b;
  const uint32_t* c;
  explicit registers(const operation& o)
    : d(o.list), a(d + (o.list_size - o.mode - o.bytes - o.elements)), b(a + o.mode),
      c(b + o.bytes) {}
};

template <class Unit>
struct matrices {
  typename Unit::value a[outer_max][depth_max];
  /// By columns.
  typename Unit::value b[outer_max][depth_max];
  typename Unit::sum c[outer_max][outer_max];
};

/// Reads one operand; the bits of `b1` stay together in words.
template <class Unit>
void gather(lane_state& s, const matrix_product& p, matrix_role role, const uint32_t* list,
  typename Unit::value (*out)[depth_max]) {
  const bool left = role == matrix_role::left;
  const element_type type = left ? p.a : p.b;
  const uint32_t count = matrix_registers(p.m, p.n, p.k(), role, type);
  const bool words = type == element_type::b1;
  const uint32_t elements = words ? 1 : std::max(1U, 32 / bits_of(type));
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t j = 0; j < elements; ++j) {
        matrix_place at = place_in_matrix(p.m, p.n, p.k(), role, type, l, i, j);
        if (!left)
          std::swap(at.row, at.column);
        auto& target = out[at.row][words ? at.column / 32 : at.column];
        if constexpr (std::is_same_v<Unit, twice>)
          target = lane_values<double>(s, list[i])[l];
        else
          target = element_of<typename Unit::value>(type, lane_values<uint32_t>(s, list[i])[l], j);
      }
}

template <class Unit>
void read_sums(lane_state& s, const matrix_product& p, const uint32_t* list, matrices<Unit>& x) {
  const uint32_t count = matrix_registers(p.m, p.n, p.k(), matrix_role::sum, p.c);
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t j = 0; j < (p.c == element_type::f16 ? 2 : 1); ++j) {
        const matrix_place at = place_in_matrix(p.m, p.n, p.k(), matrix_role::sum, p.c, l, i, j);
        auto& target = x.c[at.row][at.column];
        if constexpr (std::is_same_v<Unit, twice>)
          target = lane_values<double>(s, list[i])[l];
        else if constexpr (!std::is_same_v<Unit, single>)
          target = lane_values<int32_t>(s, list[i])[l];
        else if (p.c == element_type::f16)
          target = element_of<float>(p.c, lane_values<uint32_t>(s, list[i])[l], j);
        else
          target = lane_values<float>(s, list[i])[l];
      }
}

template <class Unit>
void write_sums(
  lane_state& s, const matrix_product& p, const uint32_t* list, const matrices<Unit>& x) {
  const uint32_t count = matrix_registers(p.m, p.n, p.k(), matrix_role::sum, p.d);
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      const matrix_place at = place_in_matrix(p.m, p.n, p.k(), matrix_role::sum, p.d, l, i, 0);
      const auto value = x.c[at.row][at.column];
      if constexpr (std::is_same_v<Unit, twice>) {
        lane_values<double>(s, list[i])[l] = products::settled(value);
      } else if constexpr (!std::is_same_v<Unit, single>) {
        const int64_t kept =
          p.flags & matrix_saturate ? std::clamp<int64_t>(value, INT32_MIN, INT32_MAX) : value;
        lane_values<int32_t>(s, list[i])[l] = static_cast<int32_t>(kept);
      } else if (p.d == element_type::f16) {
        const matrix_place next = place_in_matrix(p.m, p.n, p.k(), matrix_role::sum, p.d, l, i, 1);
        const uint32_t low = products::to_half(value);
        const uint32_t high = products::to_half(x.c[next.row][next.column]);
        lane_values<uint32_t>(s, list[i])[l] = high << 16 | low;
      } else {
        lane_values<float>(s, list[i])[l] = products::settled(value);
      }
    }
}

template <class Unit>
void multiply(lane_state& s, const operation& o, const matrix_product& p) {
  const registers from(o);
  matrices<Unit> x;
  gather<Unit>(s, p, matrix_role::left, from.a, x.a);
  gather<Unit>(s, p, matrix_role::right, from.b, x.b);
  read_sums<Unit>(s, p, from.c, x);
  const uint32_t depth = std::is_same_v<Unit, bit> ? p.k() / 32 : p.k();
  for (uint32_t r = 0; r < p.m; ++r)
    for (uint32_t n = 0; n < p.n; ++n)
      for (uint32_t k = 0; k < depth; ++k)
        Unit::add(x.c[r][n], x.a[r][k], x.b[n][k], p.flags);
  write_sums<Unit>(s, p, from.d, x);
}

} // namespace

void multiply_matrices(lane_state& s, const operation& o) {
  const auto p = __builtin_bit_cast(matrix_product, o.imm);
  switch (p.a) {
  case element_type::f64:
    return multiply<twice>(s, o, p);
  case element_type::b1:
    return multiply<bit>(s, o, p);
  case element_type::s8:
  case element_type::u8:
  case element_type::s4:
  case element_type::u4:
    return multiply<whole>(s, o, p);
  default:
    return multiply<single>(s, o, p);
  }
}

namespace {

/// Row and column of value i of a lane's result of mma.m8n8k4.
matrix_place quarter_place(element_type type, uint32_t lane, uint32_t i) {
  const uint32_t upper = lane >= 16 ? 4 : 0;
  if (type == element_type::f16)
    return {(lane & 3) + upper, i};
  return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
}

} // namespace

void multiply_quarters(lane_state& s, const operation& o) {
  const auto p = __builtin_bit_cast(matrix_product, o.imm);
  const registers from(o);
  const auto value = [&](const uint32_t* list, uint32_t lane, uint32_t i) {
    return element_of<float>(element_type::f16, lane_values<uint32_t>(s, list[i / 2])[lane], i & 1);
  };
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    float a[8][4];
    float b[8][4];
    float c[8][8];
    for (uint32_t x = 0; x < 8; ++x) {
      // Four lanes of the lower half of the warp, and the four that stand 16 above.
      const uint32_t lane = quarter * 4 + (x & 3) + (x & 4) * 4;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t other = i + (x & 4);
        (p.flags & matrix_left_by_column ? a[other][x & 3] : a[x][i]) = value(from.a, lane, i);
        (p.flags & matrix_right_by_row ? b[other][x & 3] : b[x][i]) = value(from.b, lane, i);
      }
      for (uint32_t i = 0; i < 8; ++i) {
        const matrix_place at = quarter_place(p.c, lane, i);
        c[at.row][at.column] = p.c == element_type::f16 ? value(from.c, lane, i)
                                                        : lane_values<float>(s, from.c[i])[lane];
      }
    }
    for (uint32_t r = 0; r < 8; ++r)
      for (uint32_t n = 0; n < 8; ++n)
        for (uint32_t k = 0; k < 4; ++k)
          c[r][n] += a[r][k] * b[n][k];
    for (uint32_t x = 0; x < 8; ++x) {
      const uint32_t lane = quarter * 4 + (x & 3) + (x & 4) * 4;
      for (uint32_t i = 0; i < 8; ++i) {
        const matrix_place at = quarter_place(p.d, lane, i);
        const float sum = c[at.row][at.column];
        if (p.d == element_type::f16)
          lane_values<uint16_t>(s, from.d[i / 2])[2 * lane + (i & 1)] = products::to_half(sum);
        else
          lane_values<float>(s, from.d[i])[lane] = products::settled(sum);
      }
    }
  }
}

} // namespace gristmill::ptx
