#include "gpu/mock/ptx/lanes/floats.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"
#include "gpu/mock/ptx/lanes/transpose.hpp"

/// `mma.m16n8k8` and `m16n8k16` of 16-bit floats.
///
/// A register of the left operand holds, lane by lane, an 8x8 block row by row; one of the right
/// operand such a block of its transpose; two of a result are the even and the odd columns.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

struct half {
  static float load(uint16_t bits) { return from_half_by_mask(bits); }
};
struct bfloat {
  static float load(uint16_t bits) { return from_bfloat(bits); }
};

constexpr uint32_t side = 8;
constexpr uint32_t block = side * side;
constexpr uint32_t rows = 16;

struct alignas(64) tile {
  float of[block];
};

template <class H>
void widen(lane_state& s, uint32_t reg, tile& out) {
  const uint16_t* from = lane<uint16_t>(s, reg);
  for (uint32_t i = 0; i < block; ++i)
    out.of[i] = H::load(from[i]);
}

void transpose_quarter(const float* from, float* to) {
  four a = four_at(from);
  four b = four_at(from + side);
  four c = four_at(from + 2 * side);
  four d = four_at(from + 3 * side);
  transpose_four(a, b, c, d);
  put_four(to, a);
  put_four(to + side, b);
  put_four(to + 2 * side, c);
  put_four(to + 3 * side, d);
}

void transpose(const tile& from, tile& to) {
  for (uint32_t r = 0; r < side; r += 4)
    for (uint32_t c = 0; c < side; c += 4)
      transpose_quarter(from.of + r * side + c, to.of + c * side + r);
}

/// Registers in `list`: d, a, b, c. `mode`: depth, 8 or 16. Sums go in the order of k in single
/// precision; tensor cores keep more bits and add in another order.
template <class H, bool HalfResult>
void multiply(lane_state& s, const operation& o) {
  const uint32_t results = HalfResult ? 2 : 4;
  const uint32_t deep = o.mode / side;
  const uint32_t* const a_list = o.list + results;
  const uint32_t* const b_list = a_list + 2 * deep;
  const uint32_t* const c_list = b_list + deep;
  tile a[2][2];
  tile b[2];
  tile c[2];
  for (uint32_t i = 0; i < 2 * deep; ++i)
    widen<H>(s, a_list[i], a[i & 1][i >> 1]);
  for (uint32_t i = 0; i < deep; ++i) {
    tile by_column;
    widen<H>(s, b_list[i], by_column);
    transpose(by_column, b[i]);
  }
  for (uint32_t h = 0; h < 2; ++h) {
    if constexpr (HalfResult) {
      widen<half>(s, c_list[h], c[h]);
    } else {
      const float* even = lane<float>(s, c_list[2 * h]);
      const float* odd = lane<float>(s, c_list[2 * h + 1]);
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        c[h].of[2 * l] = even[l];
        c[h].of[2 * l + 1] = odd[l];
      }
    }
  }
  // Four rows beside each other, for each sum waits for the one before.
  for (uint32_t r = 0; r < rows; r += 4) {
    float* const sums = c[r / side].of + r % side * side;
    eight sum[4];
    for (uint32_t i = 0; i < 4; ++i)
      sum[i] = *reinterpret_cast<const eight*>(sums + i * side);
    for (uint32_t d = 0; d < deep; ++d) {
      const float* const left = a[r / side][d].of + r % side * side;
      for (uint32_t k = 0; k < side; ++k) {
        const eight right = *reinterpret_cast<const eight*>(b[d].of + k * side);
        for (uint32_t i = 0; i < 4; ++i)
          sum[i] += left[i * side + k] * right;
      }
    }
    for (uint32_t i = 0; i < 4; ++i)
      *reinterpret_cast<eight*>(sums + i * side) = sum[i];
  }
  for (uint32_t h = 0; h < 2; ++h) {
    if constexpr (HalfResult) {
      uint16_t* d = lane<uint16_t>(s, o.list[h]);
      for (uint32_t i = 0; i < block; ++i)
        d[i] = to_half(c[h].of[i]);
    } else {
      float* even = lane<float>(s, o.list[2 * h]);
      float* odd = lane<float>(s, o.list[2 * h + 1]);
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        even[l] = settled(c[h].of[2 * l]);
        odd[l] = settled(c[h].of[2 * l + 1]);
      }
    }
  }
}

} // namespace

extern const handler products[3];
const handler products[3] = {multiply<half, false>, multiply<bfloat, false>, multiply<half, true>};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
