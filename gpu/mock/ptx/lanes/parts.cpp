#include "gpu/mock/ptx/lanes/loops.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// `mov` between a register and the registers of its parts, in `list`; the first is the lowest.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

template <class Part>
constexpr uint32_t bits = 8 * sizeof(Part);

template <class Whole, class Part, uint32_t Parts>
void pack(lane_state& s, const operation& o) {
  Whole* d = lane<Whole>(s, o.d);
  const Part* part[Parts];
  for (uint32_t k = 0; k < Parts; ++k)
    part[k] = lane<Part>(s, o.list[k]);
  const auto whole = [&](uint32_t l) {
    Whole value = 0;
    for (uint32_t k = 0; k < Parts; ++k)
      value |= static_cast<Whole>(part[k][l]) << (bits<Part> * k);
    return value;
  };
  const uint32_t active = s.active;
  if (active == all_lanes) {
    // Registers of two widths are never the same one.
#pragma GCC ivdep
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = whole(l);
    return;
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      d[l] = whole(l);
}

template <class Whole, class Part, uint32_t Parts>
void unpack(lane_state& s, const operation& o) {
  const Whole* a = lane<Whole>(s, o.a);
  const uint32_t active = s.active;
  for (uint32_t k = 0; k < Parts; ++k) {
    Part* d = lane<Part>(s, o.list[k]);
    if (active == all_lanes) {
#pragma GCC ivdep
      for (uint32_t l = 0; l < warp_lanes; ++l)
        d[l] = static_cast<Part>(a[l] >> (bits<Part> * k));
      continue;
    }
    for (uint32_t l = 0; l < warp_lanes; ++l)
      if (active >> l & 1)
        d[l] = static_cast<Part>(a[l] >> (bits<Part> * k));
  }
}

} // namespace

handler pack_of(uint32_t part_bytes, uint32_t parts) {
  if (part_bytes == 2)
    return parts == 2 ? pack<uint32_t, uint16_t, 2> : pack<uint64_t, uint16_t, 4>;
  return part_bytes == 4 && parts == 2 ? pack<uint64_t, uint32_t, 2> : nullptr;
}

handler unpack_of(uint32_t part_bytes, uint32_t parts) {
  if (part_bytes == 2)
    return parts == 2 ? unpack<uint32_t, uint16_t, 2> : unpack<uint64_t, uint16_t, 4>;
  return part_bytes == 4 && parts == 2 ? unpack<uint64_t, uint32_t, 2> : nullptr;
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
