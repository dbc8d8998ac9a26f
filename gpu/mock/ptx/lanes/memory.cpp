#include "gpu/mock/ptx/lanes/access.hpp"
#include "gpu/mock/ptx/lanes/loops.hpp"
#include "gpu/mock/ptx/lanes/tables.hpp"
#include "gpu/mock/ptx/lanes/transpose.hpp"

/// `ld` and `st`, with a short way for accesses of a full warp whose lanes lie as they did the last
/// time.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {
namespace {

__extension__ typedef unsigned __int128 uint128;

template <class T>
T value_at(const uint8_t* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void put_at(uint8_t* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

template <class A>
bool lies_alike(const A* a, const access_memo& m) {
  const A* distance = reinterpret_cast<const A*>(m.distance);
  const A first = a[0];
  A differs = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    differs |= static_cast<A>(a[l] - first) ^ distance[l];
  return differs == 0;
}

/// The host place of lane 0 when the access is like the remembered one, counted; or null.
template <class A>
uint8_t* recall(lane_state& s, const operation& o, access_memo& m) {
  const A* a = lane<A>(s, o.a);
  const uint64_t at = static_cast<A>(a[0] + static_cast<A>(o.imm));
  if (!m.known || at - m.first >= m.room || (at & m.low_bits_mask) != m.low_bits
    || !lies_alike(a, m))
    return nullptr;
  ++m.hits;
  if (m.is_row) {
    const uint64_t first = at >> 5;
    const uint64_t last = (at + m.length - 1) >> 5;
    m.row_sectors += last - first + 1;
    m.row_lines += (last >> 2) - (first >> 2) + 1;
  }
  return (m.in_shared ? s.shared : m.in_local ? s.local : m.base) + (at - m.origin);
}

inline uint8_t* recall(lane_state& s, const operation& o) {
  if (s.active != all_lanes || s.accesses == nullptr)
    return nullptr;
  access_memo& m = s.accesses[o.access];
  return o.address_bytes == 8 ? recall<uint64_t>(s, o, m) : recall<uint32_t>(s, o, m);
}

/// Bytes from lane 0 to lane l, of a recalled access.
struct distances {
  const access_memo& m;
  bool wide;
  int64_t operator[](uint32_t l) const {
    return wide ? static_cast<int64_t>(m.distance[l])
                : int64_t{reinterpret_cast<const int32_t*>(m.distance)[l]};
  }
};

/// 16 bytes a lane into four registers: four lanes at a time.
template <class At>
void load_four(lane_state& s, const operation& o, At at) {
  uint32_t* const d[4] = {lane<uint32_t>(s, o.list[0]), lane<uint32_t>(s, o.list[1]),
    lane<uint32_t>(s, o.list[2]), lane<uint32_t>(s, o.list[3])};
  for (uint32_t l = 0; l < warp_lanes; l += 4) {
    four a = four_at(at(l));
    four b = four_at(at(l + 1));
    four c = four_at(at(l + 2));
    four e = four_at(at(l + 3));
    transpose_four(a, b, c, e);
    put_four(d[0] + l, a);
    put_four(d[1] + l, b);
    put_four(d[2] + l, c);
    put_four(d[3] + l, e);
  }
}

template <class At>
void store_four(lane_state& s, const operation& o, At at) {
  const uint32_t* const d[4] = {lane<uint32_t>(s, o.list[0]), lane<uint32_t>(s, o.list[1]),
    lane<uint32_t>(s, o.list[2]), lane<uint32_t>(s, o.list[3])};
  for (uint32_t l = 0; l < warp_lanes; l += 4) {
    four a = four_at(d[0] + l);
    four b = four_at(d[1] + l);
    four c = four_at(d[2] + l);
    four e = four_at(d[3] + l);
    transpose_four(a, b, c, e);
    put_four(at(l), a);
    put_four(at(l + 1), b);
    put_four(at(l + 2), c);
    put_four(at(l + 3), e);
  }
}

template <class M, class D>
void load_uniform(lane_state& s, const operation& o, const uint8_t* from) {
  for (uint32_t k = 0; k < o.elements; ++k) {
    D* d = lane<D>(s, o.list[k]);
    const D value = static_cast<D>(value_at<M>(from + k * sizeof(M)));
    for (uint32_t l = 0; l < warp_lanes; ++l)
      d[l] = value;
  }
}

template <class M, class D>
void load_row(lane_state& s, const operation& o, const uint8_t* from) {
  const uint32_t elements = o.elements;
  if constexpr (sizeof(M) == 4 && sizeof(D) == 4)
    if (elements == 4)
      return load_four(s, o, [=](uint32_t l) { return from + 16 * l; });
  for (uint32_t k = 0; k < elements; ++k) {
    D* d = lane<D>(s, o.list[k]);
    const uint8_t* m = from + k * sizeof(M);
    if (elements == 1)
      for (uint32_t l = 0; l < warp_lanes; ++l)
        d[l] = static_cast<D>(value_at<M>(m + l * sizeof(M)));
    else if (elements == 2)
      for (uint32_t l = 0; l < warp_lanes; ++l)
        d[l] = static_cast<D>(value_at<M>(m + l * 2 * sizeof(M)));
    else
      for (uint32_t l = 0; l < warp_lanes; ++l)
        d[l] = static_cast<D>(value_at<M>(m + l * elements * sizeof(M)));
  }
}

/// `ld`: M in memory, D in the registers of `list`.
template <class M, class D>
void load(lane_state& s, const operation& o) {
  if (const uint8_t* const from = recall(s, o)) {
    const access_memo& m = s.accesses[o.access];
    if (m.shape == host_access::uniform)
      return load_uniform<M, D>(s, o, from);
    if (m.shape == host_access::sequential)
      return load_row<M, D>(s, o, from);
    const distances by{m, o.address_bytes == 8};
    if constexpr (sizeof(M) == 4 && sizeof(D) == 4)
      if (o.elements == 4 && !m.in_local)
        return load_four(s, o, [=](uint32_t l) { return from + by[l]; });
    for (uint32_t k = 0; k < o.elements; ++k) {
      D* d = lane<D>(s, o.list[k]);
      if (m.in_local)
        for (uint32_t l = 0; l < warp_lanes; ++l)
          d[l] = static_cast<D>(value_at<M>(from + by[l] + l * m.lane_stride + k * sizeof(M)));
      else if (by.wide)
        for (uint32_t l = 0; l < warp_lanes; ++l)
          d[l] = static_cast<D>(value_at<M>(from + by[l] + k * sizeof(M)));
      else
        for (uint32_t l = 0; l < warp_lanes; ++l)
          d[l] = static_cast<D>(value_at<M>(from + by[l] + k * sizeof(M)));
    }
    return;
  }
  host_access host;
  look_at_access(s, o, static_cast<uint32_t>(sizeof(M)) * o.elements, false, host);
  if (host.shape == host_access::uniform)
    return load_uniform<M, D>(s, o, host.lanes[0]);
  if (host.shape == host_access::sequential)
    return load_row<M, D>(s, o, host.lanes[0]);
  for (uint32_t k = 0; k < o.elements; ++k) {
    D* d = lane<D>(s, o.list[k]);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      if (s.active >> l & 1)
        d[l] = static_cast<D>(value_at<M>(host.lanes[l] + k * sizeof(M)));
  }
}

template <class M, class D>
void store_uniform(lane_state& s, const operation& o, uint8_t* to) {
  for (uint32_t k = 0; k < o.elements; ++k)
    put_at(to + k * sizeof(M), static_cast<M>(lane<D>(s, o.list[k])[warp_lanes - 1]));
}

template <class M, class D>
void store_row(lane_state& s, const operation& o, uint8_t* to) {
  const uint32_t elements = o.elements;
  if constexpr (sizeof(M) == 4 && sizeof(D) == 4)
    if (elements == 4)
      return store_four(s, o, [=](uint32_t l) { return to + 16 * l; });
  for (uint32_t k = 0; k < elements; ++k) {
    const D* d = lane<D>(s, o.list[k]);
    uint8_t* m = to + k * sizeof(M);
    if (elements == 1)
      for (uint32_t l = 0; l < warp_lanes; ++l)
        put_at(m + l * sizeof(M), static_cast<M>(d[l]));
    else
      for (uint32_t l = 0; l < warp_lanes; ++l)
        put_at(m + l * elements * sizeof(M), static_cast<M>(d[l]));
  }
}

/// `st`: where several lanes write to one place, the last lane wins.
template <class M, class D>
void store(lane_state& s, const operation& o) {
  if (uint8_t* const to = recall(s, o)) {
    ++*s.changes;
    const access_memo& m = s.accesses[o.access];
    if (m.shape == host_access::uniform)
      return store_uniform<M, D>(s, o, to);
    if (m.shape == host_access::sequential)
      return store_row<M, D>(s, o, to);
    const distances by{m, o.address_bytes == 8};
    if constexpr (sizeof(M) == 4 && sizeof(D) == 4)
      if (o.elements == 4 && !m.in_local)
        return store_four(s, o, [=](uint32_t l) { return to + by[l]; });
    for (uint32_t k = 0; k < o.elements; ++k) {
      const D* d = lane<D>(s, o.list[k]);
      for (uint32_t l = 0; l < warp_lanes; ++l)
        put_at(to + by[l] + l * m.lane_stride + k * sizeof(M), static_cast<M>(d[l]));
    }
    return;
  }
  host_access host;
  look_at_access(s, o, static_cast<uint32_t>(sizeof(M)) * o.elements, true, host);
  if (host.shape == host_access::uniform)
    return store_uniform<M, D>(s, o, host.lanes[0]);
  if (host.shape == host_access::sequential)
    return store_row<M, D>(s, o, host.lanes[0]);
  for (uint32_t k = 0; k < o.elements; ++k) {
    const D* d = lane<D>(s, o.list[k]);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      if (s.active >> l & 1)
        put_at(host.lanes[l] + k * sizeof(M), static_cast<M>(d[l]));
  }
}

template <class M, class Two, class Four, class Eight>
handler load_into(uint32_t bytes) {
  if (bytes < sizeof(M))
    return nullptr;
  switch (bytes) {
  case 2:
    if constexpr (sizeof(M) <= 2)
      return load<M, Two>;
    return nullptr;
  case 4:
    if constexpr (sizeof(M) <= 4)
      return load<M, Four>;
    return nullptr;
  case 8:
    return load<M, Eight>;
  default:
    return nullptr;
  }
}

template <class M>
handler load_unsigned(uint32_t bytes) {
  return load_into<M, uint16_t, uint32_t, uint64_t>(bytes);
}
template <class M>
handler load_signed(uint32_t bytes) {
  return load_into<M, int16_t, int32_t, int64_t>(bytes);
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

handler load_of(bool is_signed, uint32_t memory_bytes, uint32_t register_bytes) {
  switch (memory_bytes) {
  case 1:
    return is_signed ? load_signed<int8_t>(register_bytes) : load_unsigned<uint8_t>(register_bytes);
  case 2:
    return is_signed ? load_signed<int16_t>(register_bytes)
                     : load_unsigned<uint16_t>(register_bytes);
  case 4:
    return is_signed ? load_signed<int32_t>(register_bytes)
                     : load_unsigned<uint32_t>(register_bytes);
  case 8:
    return load_unsigned<uint64_t>(register_bytes);
  case 16:
    return register_bytes == 16 ? load<uint128, uint128> : nullptr;
  default:
    return nullptr;
  }
}

handler store_of(uint32_t memory_bytes, uint32_t register_bytes) {
  switch (memory_bytes) {
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

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
