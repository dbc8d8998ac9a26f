#include "gpu/mock/ptx/matrix_shapes.hpp"
#include "gpu/mock/ptx/memory.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

uint8_t* host_of(const host_access& host, uint32_t lane, uint32_t bytes) {
  return host.shape == host_access::uniform ? host.lanes[0]
    : host.shape == host_access::sequential ? host.lanes[0] + size_t{lane} * bytes
                                            : host.lanes[lane];
}

/// Moves one fragment between registers and memory. Elements that lie side by side in a register
/// and in memory go together.
void move_fragment(lane_state& s, const operation& o, bool store) {
  warp& w = as_warp(s);
  const auto what = __builtin_bit_cast(matrix_access, o.target);
  const uint32_t k = what.k == 0 ? 256 : what.k;
  const uint32_t bits = bits_of(what.type);
  const uint32_t per_register = std::max(1U, 32 / bits);
  // Left operands and most results hold neighbours of a row in one register, right ones of a
  // column.
  const bool of_column =
    what.role == matrix_role::right || (what.role == matrix_role::sum && what.n == 32);
  const bool together = what.by_column == of_column;
  const uint32_t piece = together ? std::max(bits / 8, 4U) : bits / 8;
  const uint32_t pieces = together ? 1 : per_register;
  const uint32_t held = matrix_registers(what.m, what.n, k, what.role, what.type);
  uint64_t base[warp_lanes];
  addresses_of(w, o, base);
  for (uint32_t i = 0; i < o.list_size; ++i)
    for (uint32_t j = 0; j < pieces; ++j) {
      uint64_t addresses[warp_lanes];
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        const matrix_place at =
          place_in_matrix(what.m, what.n, k, what.role, what.type, l, i % held, j);
        const uint64_t stride = lane_values<uint32_t>(w, o.b)[l];
        const uint64_t element =
          what.by_column ? at.column * stride + at.row : at.row * stride + at.column;
        addresses[l] = base[l] + element * bits / 8;
      }
      host_access host;
      resolve(w, o, addresses, piece, store, false, host);
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        uint8_t* const reg =
          w.registers + o.list[i] + size_t{l} * std::max(4U, bits / 8) + j * (bits / 8);
        uint8_t* const memory = host_of(host, l, piece);
        if (store)
          std::memcpy(memory, reg, piece);
        else
          std::memcpy(reg, memory, piece);
      }
    }
}

} // namespace

void load_fragment(lane_state& s, const operation& o) {
  move_fragment(s, o, false);
}

void store_fragment(lane_state& s, const operation& o) {
  move_fragment(s, o, true);
}

void transpose_matrix(lane_state& s, const operation& o) {
  uint16_t matrix[8][8];
  const uint16_t* a = lane_values<uint16_t>(s, o.a);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    for (uint32_t h = 0; h < 2; ++h)
      matrix[l >> 2][(l & 3) * 2 + h] = a[2 * l + h];
  uint16_t* d = lane_values<uint16_t>(s, o.d);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    for (uint32_t h = 0; h < 2; ++h)
      d[2 * l + h] = matrix[(l & 3) * 2 + h][l >> 2];
}

} // namespace gristmill::ptx
