#include "gpu/mock/ptx/lanes/loops.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

namespace gristmill::ptx::GRISTMILL_PTX_LANES {

extern const compare_entry compare_entries[];
extern const size_t compare_size;
extern const convert_entry convert_entries[];
extern const size_t convert_size;
extern const handler convert_pairs[4];
handler load_of(bool is_signed, uint32_t memory_bytes, uint32_t register_bytes);
handler store_of(uint32_t memory_bytes, uint32_t register_bytes);
handler pack_of(uint32_t part_bytes, uint32_t parts);
handler unpack_of(uint32_t part_bytes, uint32_t parts);
extern const handler shuffles[4];
extern const handler products[3];
uint32_t most_equal(uint32_t active, const uint32_t* words);
uint32_t most_in_a_bank(uint32_t active, const uint32_t* words);

namespace {

struct same {
  template <class T>
  static T of(T a) {
    return a;
  }
};

template <class T>
void select(lane_state& s, const operation& o) {
  T* d = lane<T>(s, o.d);
  const T* a = lane<T>(s, o.a);
  const T* b = lane<T>(s, o.b);
  const uint32_t active = s.active;
  const uint32_t chosen = s.predicates[o.r] ^ (o.mode & 4 ? all_lanes : 0);
#pragma GCC ivdep
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const T value = chosen >> l & 1 ? a[l] : b[l];
    d[l] = active >> l & 1 ? value : d[l];
  }
}

address_pattern pattern(const uint64_t* addresses, uint64_t stride) {
  uint64_t differs = 0;
  uint64_t leaves_row = 0;
  const uint64_t first = addresses[0];
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    differs |= addresses[l] ^ first;
    leaves_row |= addresses[l] ^ (first + l * stride);
  }
  return {differs == 0, leaves_row == 0};
}

} // namespace

// Built at load time: nothing may ask for a library before `main`.
const lane_library library{integer_entries, floating_entries, half_entries, math_entries,
  packed_entries, compare_entries, compare_size, convert_entries, convert_size,
  {unary<uint16_t, uint16_t, same>, unary<uint32_t, uint32_t, same>,
    unary<uint64_t, uint64_t, same>},
  {select<uint16_t>, select<uint32_t>, select<uint64_t>},
  {convert_pairs[0], convert_pairs[1], convert_pairs[2], convert_pairs[3]}, pack_of, unpack_of,
  {shuffles[0], shuffles[1], shuffles[2], shuffles[3]}, pattern, load_of, store_of, most_equal,
  most_in_a_bank, {products[0], products[1], products[2]}};

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
