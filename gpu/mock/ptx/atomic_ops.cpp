#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/memory.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#define GRISTMILL_PTX_LANES atomics
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {
namespace {

enum class atomic { add, min, max, band, bor, bxor, exchange, compare, increment, decrement };

__extension__ typedef unsigned __int128 uint128;

struct half {
  uint16_t bits;
  static half least(half a, half b) {
    return {
      atomics::to_half(atomics::smaller(atomics::from_half(a.bits), atomics::from_half(b.bits)))};
  }
  static half most(half a, half b) {
    return {
      atomics::to_half(atomics::larger(atomics::from_half(a.bits), atomics::from_half(b.bits)))};
  }
  static half sum(half a, half b) {
    return {atomics::to_half(atomics::from_half(a.bits) + atomics::from_half(b.bits))};
  }
};
struct bfloat {
  uint16_t bits;
  static bfloat least(bfloat a, bfloat b) {
    return {atomics::to_bfloat(
      atomics::smaller(atomics::from_bfloat(a.bits), atomics::from_bfloat(b.bits)))};
  }
  static bfloat most(bfloat a, bfloat b) {
    return {atomics::to_bfloat(
      atomics::larger(atomics::from_bfloat(a.bits), atomics::from_bfloat(b.bits)))};
  }
  static bfloat sum(bfloat a, bfloat b) {
    return {atomics::to_bfloat(atomics::from_bfloat(a.bits) + atomics::from_bfloat(b.bits))};
  }
};
template <class H>
struct two {
  H low;
  H high;
  static two sum(two a, two b) { return {H::sum(a.low, b.low), H::sum(a.high, b.high)}; }
  static two least(two a, two b) { return {H::least(a.low, b.low), H::least(a.high, b.high)}; }
  static two most(two a, two b) { return {H::most(a.low, b.low), H::most(a.high, b.high)}; }
};

template <atomic Kind, class T>
T updated(T old, T b, T c) {
  if constexpr (std::is_class_v<T>) {
    return Kind == atomic::min ? T::least(old, b)
      : Kind == atomic::max    ? T::most(old, b)
                               : T::sum(old, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    if constexpr (Kind == atomic::add)
      return atomics::settled(old + b);
    else if constexpr (Kind == atomic::min)
      return atomics::smaller(old, b);
    else
      return atomics::larger(old, b);
  } else {
    switch (Kind) {
    case atomic::add:
      return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(b));
    case atomic::min:
      return std::min(old, b);
    case atomic::max:
      return std::max(old, b);
    case atomic::band:
      return static_cast<T>(old & b);
    case atomic::bor:
      return static_cast<T>(old | b);
    case atomic::bxor:
      return static_cast<T>(old ^ b);
    case atomic::exchange:
      return b;
    case atomic::compare:
      return old == b ? c : old;
    case atomic::increment:
      return static_cast<T>(old >= b ? 0 : old + 1);
    case atomic::decrement:
      return static_cast<T>(old == 0 || old > b ? b : old - 1);
    }
    return old;
  }
}

/// Lanes that go to one address are served one after the other.
uint32_t most_on_one_address(uint32_t active, const uint64_t* addresses) {
  const uint64_t first = addresses[first_lane(active)];
  uint32_t words[warp_lanes];
  bool near = true;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const uint64_t from_first = addresses[l] - first + (1U << 30);
    words[l] = static_cast<uint32_t>(from_first);
    near = near && (!(active >> l & 1) || from_first >> 31 == 0);
  }
  if (near)
    return lanes().most_equal(active, words);
  uint64_t sorted[warp_lanes];
  uint32_t count = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (active >> l & 1)
      sorted[count++] = addresses[l];
  std::sort(sorted, sorted + count);
  uint32_t most = 0;
  uint32_t same = 0;
  for (uint32_t i = 0; i < count; ++i) {
    same = i > 0 && sorted[i] == sorted[i - 1] ? same + 1 : 1;
    most = std::max(most, same);
  }
  return most;
}

/// Sector by sector: who meets on one address is served one after the other, and a sector that has
/// no address twice takes one update.
void count_updates(warp& w, const uint64_t* addresses, bool is_float) {
  uint64_t sorted[warp_lanes];
  uint32_t count = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l))
      sorted[count++] = addresses[l];
  std::sort(sorted, sorted + count);
  for (uint32_t i = 0; i < count;) {
    const uint64_t sector = sorted[i] >> 5;
    uint64_t most = 0;
    while (i < count && sorted[i] >> 5 == sector) {
      const uint64_t address = sorted[i];
      uint64_t same = 0;
      for (; i < count && sorted[i] == address; ++i)
        ++same;
      most = std::max(most, same);
    }
    const uint64_t conflicts = is_float ? most - 1 : 0;
    w.block->done->atomic_updates += most;
    w.block->done->atomic_float_conflicts += conflicts;
    atomic_traffic_map& pieces = *w.block->atomics;
    const uint64_t piece = sector >> 4;
    const auto found =
      pieces.size() < atomic_pieces_max ? pieces.try_emplace(piece).first : pieces.find(piece);
    if (found == pieces.end())
      continue;
    found->second.updates += most;
    found->second.float_conflicts += conflicts;
  }
}

template <class T>
constexpr bool adds_floats = std::is_floating_point_v<T> || std::is_class_v<T>;

void count_conflicts(warp& w, const operation& o, const uint64_t* addresses, bool is_float) {
  const uint32_t most = most_on_one_address(w.active, addresses);
  const uint64_t window = addresses[first_lane(w.active)] & window_mask;
  if (o.where == space::generic && window != 0)
    counts_of(w, o)
      .memory[window == shared_window ? generic_to_shared : generic_to_local]
      .wavefronts += most - 1;
  else {
    if (w.block->atomics && o.where != space::shared)
      count_updates(w, addresses, is_float);
    // The first pass through shared memory was counted with its banks.
    counts_of(w, o).memory[as_counted].wavefronts += o.where == space::shared ? most - 1 : most;
  }
}

/// In the order of the lanes, which makes sums of floats reproducible.
template <class T, atomic Kind>
void atomic_operation(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  host_access host;
  addresses_of(w, o, addresses);
  resolve(w, o, addresses, sizeof(T), true, true, host);
  count_conflicts(w, o, addresses, adds_floats<T>);
  T* d = lane_values<T>(w, o.d);
  const T* b = lane_values<const T>(w, o.b);
  const T* c = lane_values<const T>(w, o.c);
  bool changed = false;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    T old;
    std::memcpy(&old, host.lanes[l], sizeof(T));
    T now = updated<Kind>(old, b[l], c[l]);
    // What PTX says of atom.add.f32, and only in global memory.
    if constexpr (std::is_same_v<T, float>)
      if (o.counted == category::atomic_global)
        now = atomics::flushed(atomics::flushed(old) + atomics::flushed(b[l]));
    changed = changed || std::memcmp(&old, &now, sizeof(T)) != 0;
    std::memcpy(host.lanes[l], &now, sizeof(T));
    d[l] = old;
  }
  *w.block->changes += changed ? 1 : 0;
}

/// `list` holds the registers of the `elements` values, and for `atom` those of the old ones.
template <class T, atomic Kind>
void vector_reduction(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  host_access host;
  addresses_of(w, o, addresses);
  resolve(w, o, addresses, static_cast<uint32_t>(sizeof(T) * o.elements), true, true, host);
  count_conflicts(w, o, addresses, adds_floats<T>);
  ++*w.block->changes;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    for (uint32_t k = 0; k < o.elements; ++k) {
      T old;
      std::memcpy(&old, host.lanes[l] + k * sizeof(T), sizeof(T));
      const T value = lane_values<const T>(w, o.list[k])[l];
      const T now = updated<Kind>(old, value, value);
      std::memcpy(host.lanes[l] + k * sizeof(T), &now, sizeof(T));
      if (o.list_size > o.elements)
        lane_values<T>(w, o.list[o.elements + k])[l] = old;
    }
  }
}

template <class T>
handler integer_atomic(std::string_view operation) {
  static const std::pair<std::string_view, handler> table[] = {
    {"add", atomic_operation<T, atomic::add>}, {"min", atomic_operation<T, atomic::min>},
    {"max", atomic_operation<T, atomic::max>}, {"and", atomic_operation<T, atomic::band>},
    {"or", atomic_operation<T, atomic::bor>}, {"xor", atomic_operation<T, atomic::bxor>},
    {"exch", atomic_operation<T, atomic::exchange>}, {"cas", atomic_operation<T, atomic::compare>},
    {"inc", atomic_operation<T, atomic::increment>},
    {"dec", atomic_operation<T, atomic::decrement>}};
  for (const auto& [name, run] : table)
    if (name == operation)
      return run;
  return nullptr;
}

} // namespace

handler atomic_handler(std::string_view operation, std::string_view type) {
  const bool order = operation == "add" || operation == "min" || operation == "max";
  const bool bits = operation == "exch" || operation == "cas" || operation == "and"
    || operation == "or" || operation == "xor";
  if (type == "f32")
    return operation == "add" ? atomic_operation<float, atomic::add> : nullptr;
  if (type == "f64")
    return operation == "add" ? atomic_operation<double, atomic::add> : nullptr;
  if (type == "b128")
    return operation == "cas" ? atomic_operation<uint128, atomic::compare>
      : operation == "exch"   ? atomic_operation<uint128, atomic::exchange>
                              : nullptr;
  if (type == "f16")
    return operation == "add" ? atomic_operation<half, atomic::add> : nullptr;
  if (type == "bf16")
    return operation == "add" ? atomic_operation<bfloat, atomic::add> : nullptr;
  if (type == "f16x2")
    return operation == "add" ? atomic_operation<two<half>, atomic::add> : nullptr;
  if (type == "bf16x2")
    return operation == "add" ? atomic_operation<two<bfloat>, atomic::add> : nullptr;
  if (type == "b16")
    return operation == "cas" ? atomic_operation<uint16_t, atomic::compare>
      : operation == "exch"   ? atomic_operation<uint16_t, atomic::exchange>
                              : nullptr;
  if (type == "b32" && bits)
    return integer_atomic<uint32_t>(operation);
  if (type == "b64" && bits)
    return integer_atomic<uint64_t>(operation);
  // Front ends also write the bit operations with integer types.
  if (type == "u32" || (type == "s32" && bits))
    return integer_atomic<uint32_t>(operation);
  if ((type == "u64" || type == "s64") && (bits || (type == "u64" && order) || operation == "add"))
    return integer_atomic<uint64_t>(operation);
  if (type == "s32" && order)
    return integer_atomic<int32_t>(operation);
  if (type == "s64" && order)
    return integer_atomic<int64_t>(operation);
  return nullptr;
}

namespace {

template <class T>
handler half_reduction(std::string_view operation) {
  return operation == "add" ? vector_reduction<T, atomic::add>
    : operation == "min"    ? vector_reduction<T, atomic::min>
    : operation == "max"    ? vector_reduction<T, atomic::max>
                            : nullptr;
}

} // namespace

handler vector_reduction_handler(std::string_view operation, std::string_view type) {
  if (type == "f32")
    return operation == "add" ? vector_reduction<float, atomic::add> : nullptr;
  if (type == "f16")
    return half_reduction<half>(operation);
  if (type == "bf16")
    return half_reduction<bfloat>(operation);
  if (type == "f16x2")
    return half_reduction<two<half>>(operation);
  if (type == "bf16x2")
    return half_reduction<two<bfloat>>(operation);
  return nullptr;
}

} // namespace gristmill::ptx
