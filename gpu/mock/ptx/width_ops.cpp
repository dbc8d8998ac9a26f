#include "gpu/mock/ptx/width_ops.hpp"

#include <fmt/format.h>

namespace gristmill::ptx {

void pack_bytes(lane_state& s, const operation& o) {
  const uint32_t whole = o.list_size;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    uint8_t value[8] = {};
    for (uint32_t k = 0; k < whole && k < sizeof value; ++k)
      value[k] = static_cast<uint8_t>(lane_values<uint16_t>(s, o.list[k])[l]);
    std::memcpy(s.registers + o.d + l * whole, value, whole);
  }
}

void unpack_bytes(lane_state& s, const operation& o) {
  const uint32_t whole = o.list_size;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    uint8_t value[8] = {};
    std::memcpy(value, s.registers + o.a + l * whole, whole);
    for (uint32_t k = 0; k < whole && k < sizeof value; ++k)
      lane_values<uint16_t>(s, o.list[k])[l] = value[k];
  }
}

void move_quad(lane_state& s, const operation& o) {
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(s, l))
      std::memmove(s.registers + o.d + l * 16, s.registers + o.a + l * 16, 16);
}

void call_of_nothing(lane_state& s, const operation& o) {
  const uint32_t lane = first_lane(s.active);
  raise(fault_kind::trap,
    fmt::format("indirect call of 0x{:x}, which is no function of the module with these parameters",
      lane_values<uint64_t>(s, o.a)[lane]),
    lane);
}

} // namespace gristmill::ptx
