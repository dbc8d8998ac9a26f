#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"

namespace gristmill::ptx {
namespace {

/// Host pointers to the eight rows of 16 bytes of matrix m, whose addresses lanes 8m to 8m + 7
/// hold. Counts the access.
void matrix_rows(warp& w, const operation& o, const uint64_t* addresses, uint32_t m, bool write,
  uint8_t** out, const char* doing) {
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
  lanes().multiply[0](s, o);
}

void mma_bf16(lane_state& s, const operation& o) {
  lanes().multiply[1](s, o);
}

void mma_f16_to_f16(lane_state& s, const operation& o) {
  lanes().multiply[2](s, o);
}

/// ldmatrix of `elements` matrices of 8x8 16-bit values; `mode` 1: transposed.
void load_matrix(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  addresses_of(w, o, addresses);
  uint8_t* row[4][8];
  for (uint32_t m = 0; m < o.elements; ++m)
    matrix_rows(w, o, addresses, m, false, row[m], "ldmatrix");
  for (uint32_t m = 0; m < o.elements; ++m) {
    uint16_t* d = lane_values<uint16_t>(w, o.list[m]);
    if (o.mode != 1) {
      for (uint32_t r = 0; r < 8; ++r)
        std::memcpy(d + size_t{r} * 8, row[m][r], 16);
      continue;
    }
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t r = l >> 2;
        const uint32_t c = (l & 3) * 2 + h;
        std::memcpy(&d[2 * l + h], row[m][c] + 2 * r, 2);
      }
  }
}

void store_matrix(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  addresses_of(w, o, addresses);
  for (uint32_t m = 0; m < o.elements; ++m) {
    uint8_t* row[8];
    matrix_rows(w, o, addresses, m, true, row, "stmatrix");
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
