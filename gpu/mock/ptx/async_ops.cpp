#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>

/// Asynchronous copies are done at once; what remains of them is the order that mbarriers enforce,
/// and in shuffled orders the moment at which mbarriers hear of them.
namespace gristmill::ptx {

mbarrier& find_mbarrier(warp& w, uint64_t address, uint32_t lane) {
  block_state& owner = block_of(w, address, lane);
  address &= shared_offset_mask;
  if (address % 8 != 0)
    raise(fault_kind::misaligned,
      fmt::format("mbarrier at shared address 0x{:x}, which is not a multiple of 8", address),
      lane);
  const auto found = owner.mbarriers.find(address);
  if (found == owner.mbarriers.end())
    raise(fault_kind::trap,
      fmt::format("the mbarrier at shared address 0x{:x} is used before mbarrier.init", address),
      lane);
  return found->second;
}

namespace {

/// After an arrival, or bytes: completes the phase if nothing is pending.
void advance(const block_state& block, mbarrier& m) {
  ++*block.changes;
  if (m.pending > 0 || m.pending_bytes != 0)
    return;
  ++m.phase;
  m.pending = m.expected;
  if (block.watch)
    block.watch->phase_complete(m);
}

} // namespace

void complete_bytes(warp& w, mbarrier& m, int64_t bytes) {
  if (w.block->watch)
    w.block->watch->bytes_arrive(w, m);
  if (w.block->cluster->arrives_late)
    w.block->cluster->late.emplace_back(&m, bytes);
  else
    arrive_bytes(*w.block, m, bytes);
}

void arrive_bytes(const block_state& block, mbarrier& m, int64_t bytes) {
  m.pending_bytes -= bytes;
  advance(block, m);
}

void arrive_once(warp& w, mbarrier& m, uint32_t lane) {
  if (m.pending < 1)
    raise(fault_kind::trap, "an arrival at an mbarrier that awaits none", lane);
  --m.pending;
  if (w.block->watch)
    w.block->watch->bytes_arrive(w, m);
  advance(*w.block, m);
}

void need_same_block(
  warp& w, uint64_t target, uint64_t mbarrier_at, uint32_t lane, const char* what) {
  if (&block_of(w, target, lane) != &block_of(w, mbarrier_at, lane))
    raise(fault_kind::trap,
      fmt::format("the mbarrier of a {} is in another block than its target", what), lane);
}

/// All lanes copy in full, inside shared memory and one buffer. False where that is not so, and
/// nothing is done yet.
bool copy_together(
  warp& w, const operation& o, const uint64_t* to, const uint64_t* from, uint64_t offset) {
  if (w.active != all_lanes || (o.mode & 6) != 0 || w.block->watch)
    return false;
  const uint32_t bytes = o.bytes;
  uint64_t addresses[warp_lanes];
  uint64_t low_from = UINT64_MAX, high_from = 0, high_to = 0, bits = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    addresses[l] = from[l] + offset;
    low_from = std::min(low_from, addresses[l]);
    high_from = std::max(high_from, addresses[l]);
    high_to = std::max(high_to, to[l]);
    bits |= addresses[l] | to[l];
  }
  if ((bits & (bytes - 1)) != 0 || high_to + bytes > w.block->shared_bytes)
    return false;
  if (high_from + bytes < low_from)
    return false;
  const uint8_t* const host = find_global(w, o, low_from, high_from + bytes - low_from, false);
  if (!host)
    return false;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    uint8_t* const target = w.block->shared + to[l];
    const uint8_t* const source = host + (addresses[l] - low_from);
    if (bytes == 16)
      std::memcpy(target, source, 16);
    else
      std::memcpy(target, source, bytes);
  }
  ++*w.block->changes;
  count_global(w, o, addresses, bytes, false, (o.mode & 1) == 0);
  return true;
}

/// cp.async: a shared address + imm, b global address + `target`, `bytes` to copy; c (when `mode`
/// bit 1 is set) bytes to read, the rest are zeros; bit 0: not through L1; r with bit 2: ignore.
void copy_async(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t to[warp_lanes];
  uint64_t from[warp_lanes];
  addresses_of(w, o, to);
  const auto* b = lane_values<uint64_t>(w, o.b);
  const auto offset = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(o.target)));
  const uint32_t bytes = o.bytes;
  if (copy_together(w, o, to, b, offset))
    return;
  uint32_t reading = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    from[l] = b[l] + offset;
    if (!is_active(w, l))
      continue;
    uint32_t size = o.mode & 2 ? std::min(lane_values<uint32_t>(w, o.c)[l], bytes) : bytes;
    if ((o.mode & 4) && (w.predicates[o.r] >> l & 1))
      size = 0;
    if ((to[l] | from[l]) & (bytes - 1))
      raise(fault_kind::misaligned,
        fmt::format("cp.async of {} bytes from 0x{:x} to shared 0x{:x}: not multiples of the size",
          bytes, from[l], to[l] & UINT32_MAX),
        l);
    uint8_t* target = need_shared(w, to[l], bytes, true, l, "cp.async write");
    if (size > 0) {
      std::memcpy(target, need_global(w, o, from[l], size, false, l, "cp.async read"), size);
      reading |= 1U << l;
    }
    std::memset(target + size, 0, bytes - size);
  }
  if (reading == 0)
    return;
  const uint32_t active = w.active;
  w.active = reading;
  count_global(w, o, from, bytes, false, (o.mode & 1) == 0);
  w.active = active;
}

// Two functions, so that the timing model can tell them apart.
void copy_commit(lane_state& s, const operation&) {
  as_warp(s).memory_level = 0;
}

void copy_wait(lane_state&, const operation&) {}

void mbarrier_init(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    need_shared(w, address[l], 8, true, l, "mbarrier.init");
    const int64_t count = lane_values<uint32_t>(w, o.b)[l];
    w.block->mbarriers[address[l] & UINT32_MAX] = {count, count, 0, 0, 0, {}, false};
    ++*w.block->changes;
    mbarrier& m = find_mbarrier(w, address[l], l);
    if (w.block->watch)
      w.block->watch->mbarrier_begins(m);
  }
}

void mbarrier_inval(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l)) {
      const auto found = w.block->mbarriers.find(address[l] & UINT32_MAX);
      if (found == w.block->mbarriers.end())
        continue;
      std::erase_if(
        w.block->cluster->late, [&](const auto& bytes) { return bytes.first == &found->second; });
      w.block->mbarriers.erase(found);
      ++*w.block->changes;
    }
}

/// `mode` bit 0: b is a number of arrivals (else 1); bit 1: c is a number of bytes to expect; bit
/// 2: arrivals that were added to the expectation before, so that only the check remains. d: the
/// phase, as a token.
void mbarrier_arrive(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    mbarrier& m = find_mbarrier(w, address[l], l);
    lane_values<uint64_t>(w, o.d)[l] = m.phase;
    const int64_t arrivals = o.mode & 4 ? 0 : o.mode & 1 ? lane_values<uint32_t>(w, o.b)[l] : 1;
    if (arrivals > m.pending)
      raise(fault_kind::trap,
        fmt::format("{} arrivals at an mbarrier that awaits {}", arrivals, m.pending), l);
    if (o.mode & 2)
      m.pending_bytes += lane_values<uint32_t>(w, o.c)[l];
    m.pending -= arrivals;
    if (w.block->watch)
      w.block->watch->arrives(w, o, m);
    advance(*w.block, m);
  }
}

void mbarrier_expect(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l))
      find_mbarrier(w, address[l], l).pending_bytes += lane_values<uint32_t>(w, o.b)[l];
  ++*w.block->changes;
}

/// p: the phase of parity b (`mode` 0) or of token b (`mode` 1) is complete.
void mbarrier_test(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  uint32_t complete = 0;
  // Mostly all lanes look at one.
  mbarrier* last = nullptr;
  uint64_t last_address = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    if ((address[l] & UINT32_MAX) > shared_offset_mask)
      raise(fault_kind::trap, "a wait for an mbarrier of another block", l);
    if (!last || last_address != address[l]) {
      last = &find_mbarrier(w, address[l], l);
      last_address = address[l];
    }
    mbarrier& m = *last;
    const bool done = o.mode == 1 ? m.phase != lane_values<uint64_t>(w, o.b)[l]
                                  : (m.phase & 1) != (lane_values<uint32_t>(w, o.b)[l] & 1);
    complete |= static_cast<uint32_t>(done) << l;
    if (done && w.block->watch)
      w.block->watch->waited(w, o, m, l);
    w.tensor_unfenced = w.tensor_unfenced || (done && m.has_commits);
    if (done && !m.commits.empty())
      learn_commits(w.block->cluster->tensor, m.commits, m.phase);
  }
  set_lanes(w.predicates[o.p], w.active, complete);
  if ((w.active & ~complete) != 0)
    w.yields = true;
}

} // namespace gristmill::ptx
