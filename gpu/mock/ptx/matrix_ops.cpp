#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"

#define GRISTMILL_PTX_LANES matrices
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {
namespace {

struct half {
  static float load(uint32_t bits) { return matrices::from_half(static_cast<uint16_t>(bits)); }
};
struct bfloat {
  static float load(uint32_t bits) { return matrices::from_bfloat(static_cast<uint16_t>(bits)); }
};

constexpr uint32_t rows = 16;
constexpr uint32_t columns = 8;

/// The place of an element of the result: register i of a lane holds row `g + 8 * (i / 2)`, column
/// `t + i % 2`, with g = lane / 4 and t = 2 * (lane % 4). The operands are laid out alike.
struct fragment {
  uint32_t g;
  uint32_t t;
  explicit fragment(uint32_t lane) : g(lane >> 2), t((lane & 3) * 2) {}
};

/// mma.m16n8kK, K = 8 or 16. Registers in `list`: d, a, b, c. `mode`: depth K. Sums go in the order
/// of k in single precision; tensor cores keep more bits and add in another order.
template <class H, bool HalfResult>
void multiply(lane_state& s, const operation& o) {
  const uint32_t depth = o.mode;
  const uint32_t results = HalfResult ? 2 : 4;
  const uint32_t lefts = depth / 4;
  const uint32_t rights = depth / 8;
  const uint32_t* const a_list = o.list + results;
  const uint32_t* const b_list = a_list + lefts;
  const uint32_t* const c_list = b_list + rights;
  float a[rows][16];
  float b[16][columns];
  float c[rows][columns];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const fragment f(l);
    for (uint32_t i = 0; i < lefts; ++i) {
      const uint32_t both = lane_values<uint32_t>(s, a_list[i])[l];
      const uint32_t row = f.g + (i & 1) * 8;
      const uint32_t k = f.t + (i >> 1) * 8;
      a[row][k] = H::load(both);
      a[row][k + 1] = H::load(both >> 16);
    }
    for (uint32_t i = 0; i < rights; ++i) {
      const uint32_t both = lane_values<uint32_t>(s, b_list[i])[l];
      b[f.t + i * 8][f.g] = H::load(both);
      b[f.t + i * 8 + 1][f.g] = H::load(both >> 16);
    }
    for (uint32_t i = 0; i < results; ++i) {
      if constexpr (HalfResult) {
        const uint32_t both = lane_values<uint32_t>(s, c_list[i])[l];
        c[f.g + i * 8][f.t] = half::load(both);
        c[f.g + i * 8][f.t + 1] = half::load(both >> 16);
      } else {
        c[f.g + (i >> 1) * 8][f.t + (i & 1)] = lane_values<float>(s, c_list[i])[l];
      }
    }
  }
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t n = 0; n < columns; ++n)
        c[r][n] += a[r][k] * b[k][n];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const fragment f(l);
    for (uint32_t i = 0; i < results; ++i) {
      if constexpr (HalfResult) {
        const uint32_t low = matrices::to_half(c[f.g + i * 8][f.t]);
        const uint32_t high = matrices::to_half(c[f.g + i * 8][f.t + 1]);
        lane_values<uint32_t>(s, o.list[i])[l] = high << 16 | low;
      } else {
        lane_values<float>(s, o.list[i])[l] =
          matrices::settled(c[f.g + (i >> 1) * 8][f.t + (i & 1)]);
      }
    }
  }
}

/// Host pointers to the eight rows of 16 bytes of matrix m, whose addresses lanes 8m to 8m + 7
/// hold. Counts the access.
void matrix_rows(
  warp& w, const operation& o, uint32_t m, bool write, uint8_t** out, const char* doing) {
  uint64_t addresses[warp_lanes];
  addresses_of(w, o, addresses);
  uint64_t first_eight[warp_lanes] = {};
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t lane = m * 8 + i;
    const uint64_t address = addresses[lane] & UINT32_MAX;
    if (address % 16 != 0)
      raise(fault_kind::misaligned,
        std::string(doing) + " at 0x" + std::to_string(address) + ", which is not a multiple of 16",
        lane);
    out[i] = need_shared(w, address, 16, write, lane, doing);
    first_eight[i] = address;
  }
  counts_of(w, o).memory[as_counted].wavefronts += bank_wavefronts(0xff, first_eight, 16);
  counts_of(w, o).memory[as_counted].bytes += 128;
}

} // namespace

void mma_f16(lane_state& s, const operation& o) {
  multiply<half, false>(s, o);
}

void mma_bf16(lane_state& s, const operation& o) {
  multiply<bfloat, false>(s, o);
}

void mma_f16_to_f16(lane_state& s, const operation& o) {
  multiply<half, true>(s, o);
}

/// ldmatrix of `elements` matrices of 8x8 16-bit values; `mode` 1: transposed.
void load_matrix(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint8_t* row[4][8];
  for (uint32_t m = 0; m < o.elements; ++m)
    matrix_rows(w, o, m, false, row[m], "ldmatrix");
  for (uint32_t m = 0; m < o.elements; ++m) {
    uint16_t* d = lane_values<uint16_t>(w, o.list[m]);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t r = l >> 2;
        const uint32_t c = (l & 3) * 2 + h;
        const uint8_t* from = o.mode == 1 ? row[m][c] + 2 * r : row[m][r] + 2 * c;
        std::memcpy(&d[2 * l + h], from, 2);
      }
  }
}

void store_matrix(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  for (uint32_t m = 0; m < o.elements; ++m) {
    uint8_t* row[8];
    matrix_rows(w, o, m, true, row, "stmatrix");
    const uint16_t* d = lane_values<uint16_t>(w, o.list[m]);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t r = l >> 2;
        const uint32_t c = (l & 3) * 2 + h;
        std::memcpy(o.mode == 1 ? row[c] + 2 * r : row[r] + 2 * c, &d[2 * l + h], 2);
      }
  }
}

} // namespace gristmill::ptx
