#include "gpu/mock/ptx/memory.hpp"

#include <type_traits>

namespace gristmill::ptx {
namespace {

/// `ld`: M in memory, D in the registers of `list`.
template <class M, class D>
void load(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  host_access host;
  addresses_of(w, o, addresses);
  const uint32_t elements = o.elements;
  resolve(w, o, addresses, static_cast<uint32_t>(sizeof(M)) * elements, false, false, host);
  for (uint32_t k = 0; k < elements; ++k) {
    D* d = lane_values<D>(w, o.list[k]);
    if (host.shape == host_access::uniform) {
      M value;
      std::memcpy(&value, host.lanes[0] + k * sizeof(M), sizeof(M));
      for (uint32_t l = 0; l < warp_lanes; ++l)
        d[l] = static_cast<D>(value);
    } else if (host.shape == host_access::sequential) {
      const M* m = reinterpret_cast<const M*>(host.lanes[0]) + k;
      if (elements == 1)
        for (uint32_t l = 0; l < warp_lanes; ++l)
          d[l] = static_cast<D>(m[l]);
      else
        for (uint32_t l = 0; l < warp_lanes; ++l)
          d[l] = static_cast<D>(m[l * elements]);
    } else {
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        if (!is_active(w, l))
          continue;
        M value;
        std::memcpy(&value, host.lanes[l] + k * sizeof(M), sizeof(M));
        d[l] = static_cast<D>(value);
      }
    }
  }
}

/// `st`: where several lanes write to one place, the last lane wins.
template <class M, class D>
void store(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  host_access host;
  addresses_of(w, o, addresses);
  const uint32_t elements = o.elements;
  resolve(w, o, addresses, static_cast<uint32_t>(sizeof(M)) * elements, true, false, host);
  for (uint32_t k = 0; k < elements; ++k) {
    const D* d = lane_values<D>(w, o.list[k]);
    if (host.shape == host_access::sequential) {
      M* m = reinterpret_cast<M*>(host.lanes[0]) + k;
      for (uint32_t l = 0; l < warp_lanes; ++l)
        m[l * elements] = static_cast<M>(d[l]);
    } else if (host.shape == host_access::uniform) {
      const M value = static_cast<M>(d[warp_lanes - 1]);
      std::memcpy(host.lanes[0] + k * sizeof(M), &value, sizeof(M));
    } else {
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        if (!is_active(w, l))
          continue;
        const M value = static_cast<M>(d[l]);
        std::memcpy(host.lanes[l] + k * sizeof(M), &value, sizeof(M));
      }
    }
  }
}

__extension__ typedef unsigned __int128 uint128;

template <class M>
handler load_into(uint32_t bytes) {
  constexpr bool is_signed = std::is_signed_v<M>;
  if (bytes < sizeof(M))
    return nullptr;
  switch (bytes) {
  case 2:
    if constexpr (sizeof(M) <= 2)
      return load<M, std::conditional_t<is_signed, int16_t, uint16_t>>;
    return nullptr;
  case 4:
    if constexpr (sizeof(M) <= 4)
      return load<M, std::conditional_t<is_signed, int32_t, uint32_t>>;
    return nullptr;
  case 8:
    return load<M, std::conditional_t<is_signed, int64_t, uint64_t>>;
  default:
    return nullptr;
  }
}

template <class M>
handler store_from(uint32_t bytes) {
  if (bytes < sizeof(M))
    return nullptr;
  switch (bytes) {
  case 2:
    if constexpr (sizeof(M) <= 2)
      return store<M, uint16_t>;
    return nullptr;
  case 4:
    if constexpr (sizeof(M) <= 4)
      return store<M, uint32_t>;
    return nullptr;
  case 8:
    return store<M, uint64_t>;
  default:
    return nullptr;
  }
}

} // namespace

handler load_handler(std::string_view type, uint32_t register_bytes) {
  if (type == "s8")
    return load_into<int8_t>(register_bytes);
  if (type == "s16")
    return load_into<int16_t>(register_bytes);
  if (type == "s32")
    return load_into<int32_t>(register_bytes);
  switch (type_bytes(type)) {
  case 1:
    return load_into<uint8_t>(register_bytes);
  case 2:
    return load_into<uint16_t>(register_bytes);
  case 4:
    return load_into<uint32_t>(register_bytes);
  case 8:
    return load_into<uint64_t>(register_bytes);
  case 16:
    return register_bytes == 16 ? load<uint128, uint128> : nullptr;
  default:
    return nullptr;
  }
}

handler store_handler(std::string_view type, uint32_t register_bytes) {
  switch (type_bytes(type)) {
  case 1:
    return store_from<uint8_t>(register_bytes);
  case 2:
    return store_from<uint16_t>(register_bytes);
  case 4:
    return store_from<uint32_t>(register_bytes);
  case 8:
    return store_from<uint64_t>(register_bytes);
  case 16:
    return register_bytes == 16 ? store<uint128, uint128> : nullptr;
  default:
    return nullptr;
  }
}

} // namespace gristmill::ptx
