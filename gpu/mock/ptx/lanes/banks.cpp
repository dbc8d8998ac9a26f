#include "gpu/mock/ptx/lanes/loops.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"

/// Lanes that meet at one word or in one bank, each compared with all others at once.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

/// Twice, so that a rotation is a read from further on.
struct doubled {
  alignas(64) uint32_t values[2 * warp_lanes];
};

/// Inactive lanes get values of their own, which no word has.
doubled twice(uint32_t active, const uint32_t* words) {
  doubled out;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    out.values[l] = out.values[l + warp_lanes] =
      active >> l & 1 ? words[l] : uint32_t{0x80000000} | l;
  return out;
}

/// How many of the values are the same.
uint32_t most_alike(const doubled& all) {
  alignas(64) uint32_t same[warp_lanes];
  for (uint32_t l = 0; l < warp_lanes; ++l)
    same[l] = all.values[l] == all.values[l + 1] ? 2U : 1U;
  for (uint32_t by = 2; by < warp_lanes; ++by)
    for (uint32_t l = 0; l < warp_lanes; ++l)
      same[l] += all.values[l] == all.values[l + by] ? 1U : 0U;
  uint32_t most = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    most = most < same[l] ? same[l] : most;
  return most;
}

/// Whether each of the lanes has a bank of its own.
bool have_own_banks(uint32_t active, const uint32_t* words) {
  uint32_t taken = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    taken |= (active >> l & 1) << (words[l] & 31);
  return __builtin_popcount(taken) == __builtin_popcount(active);
}

} // namespace

uint32_t most_equal(uint32_t active, const uint32_t* words) {
  return most_alike(twice(active, words));
}

uint32_t most_in_a_bank(uint32_t active, const uint32_t* words) {
  if (have_own_banks(active, words))
    return 1;
  const doubled all = twice(active, words);
  // Of lanes with the same word the one with the highest number stands for all.
  alignas(64) uint32_t repeated[warp_lanes];
  for (uint32_t l = 0; l < warp_lanes; ++l)
    repeated[l] = all.values[l] == all.values[l + 1] && l + 1 < warp_lanes ? 1U : 0U;
  for (uint32_t by = 2; by < warp_lanes; ++by)
    for (uint32_t l = 0; l < warp_lanes; ++l)
      repeated[l] |= all.values[l] == all.values[l + by] && l + by < warp_lanes ? 1U : 0U;
  // Banks of those who stand for nobody are all different and no bank.
  doubled banks;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    banks.values[l] = banks.values[l + warp_lanes] =
      (active >> l & 1) != 0 && repeated[l] == 0 ? words[l] & 31 : warp_lanes + l;
  return most_alike(banks);
}

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
