#include "gpu/mock/ptx/lanes/masks.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// `shfl` of a full warp, in which every lane that is read from takes part.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

enum direction : uint32_t { up, down, butterfly, index };

template <direction D>
void shuffle(lane_state& s, const operation& o) {
  const uint32_t* a = lane<uint32_t>(s, o.a);
  const uint32_t* b = lane<uint32_t>(s, o.b);
  const uint32_t* c = lane<uint32_t>(s, o.c);
  uint32_t* d = lane<uint32_t>(s, o.d);
  // The destination may be any of the sources.
  alignas(64) uint32_t values[warp_lanes];
  alignas(64) uint32_t source[warp_lanes];
  alignas(64) uint8_t inside[warp_lanes];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    values[l] = a[l];
    const uint32_t segment = c[l] >> 8 & 31;
    const auto last = static_cast<int32_t>((l & segment) | (c[l] & 31 & ~segment));
    const auto at = static_cast<int32_t>(l);
    const auto by = static_cast<int32_t>(b[l] & 31);
    const int32_t from = D == up ? at - by
      : D == down                ? at + by
      : D == butterfly           ? at ^ by
                                 : static_cast<int32_t>((l & segment) | (b[l] & 31 & ~segment));
    const bool reaches = D == up ? from >= last : from <= last;
    inside[l] = reaches;
    source[l] = static_cast<uint32_t>(reaches ? from : at) & 31;
  }
  for (uint32_t l = 0; l < warp_lanes; ++l)
    d[l] = values[source[l]];
  s.predicates[o.p] = mask_of(inside);
}

} // namespace

extern const handler shuffles[4];
const handler shuffles[4] = {shuffle<up>, shuffle<down>, shuffle<butterfly>, shuffle<index>};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
