#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/printed_text.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <fmt/format.h>

namespace gristmill::ptx {

void no_operation(lane_state&, const operation&) {}

// Functions of their own, so that the watcher can tell them apart.
void memory_fence(lane_state&, const operation&) {}

void proxy_fence(lane_state&, const operation&) {}

void yield_warp(lane_state& s, const operation&) {
  as_warp(s).yields = true;
}

/// p to `imm`.
void set_predicate(lane_state& s, const operation& o) {
  set_lanes(s.predicates[o.p], s.active, o.imm != 0 ? all_lanes : 0);
}

/// p from q and r: `mode` 0 and, 1 or, 2 xor, 3 not q, 4 q; `imm` bit 0, 1: q, r negated.
void predicate_logic(lane_state& s, const operation& o) {
  const uint32_t a = s.predicates[o.q] ^ (o.imm & 1 ? all_lanes : 0);
  const uint32_t b = s.predicates[o.r] ^ (o.imm & 2 ? all_lanes : 0);
  const uint32_t results[5] = {a & b, a | b, a ^ b, ~a, a};
  set_lanes(s.predicates[o.p], s.active, results[o.mode]);
}

/// The clock counts the warp's instructions: the same in each run, and monotonous.
void read_clock(lane_state& s, const operation& o) {
  const uint64_t now = as_warp(s).steps;
  ++as_warp(s).clock_reads;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    if (o.bytes == 8)
      lane_values<uint64_t>(s, o.d)[l] = now;
    else
      lane_values<uint32_t>(s, o.d)[l] = static_cast<uint32_t>(o.mode == 1 ? now >> 32 : now);
  }
}

/// The registers of `list`, `bytes` each, side by side into d; the first is the lowest.
void pack(lane_state& s, const operation& o) {
  const uint32_t part = o.bytes;
  const uint32_t whole = part * o.list_size;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    uint8_t value[16];
    for (uint32_t k = 0; k < o.list_size; ++k)
      std::memcpy(value + k * part, s.registers + o.list[k] + l * part, part);
    std::memcpy(s.registers + o.d + l * whole, value, whole);
  }
}

void unpack(lane_state& s, const operation& o) {
  const uint32_t part = o.bytes;
  const uint32_t whole = part * o.list_size;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    uint8_t value[16];
    std::memcpy(value, s.registers + o.a + l * whole, whole);
    for (uint32_t k = 0; k < o.list_size; ++k)
      std::memcpy(s.registers + o.list[k] + l * part, value + k * part, part);
  }
}

namespace {

uint64_t address_in(lane_state& s, const operation& o, uint32_t lane) {
  return register_value(s, o.a, o.address_bytes, lane);
}

void put_address(lane_state& s, const operation& o, uint32_t lane, uint64_t value) {
  if (o.bytes == 8)
    lane_values<uint64_t>(s, o.d)[lane] = value;
  else
    lane_values<uint32_t>(s, o.d)[lane] = static_cast<uint32_t>(value);
}

} // namespace

void to_generic(lane_state& s, const operation& o) {
  const uint64_t window = o.where == space::shared ? shared_window : local_window;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(s, l))
      put_address(s, o, l, (address_in(s, o, l) & UINT32_MAX) | window);
}

void from_generic(lane_state& s, const operation& o) {
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(s, l))
      put_address(s, o, l, address_in(s, o, l) & UINT32_MAX);
}

void is_in_space(lane_state& s, const operation& o) {
  uint32_t result = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    const uint64_t window = address_in(s, o, l) & window_mask;
    const space where = window == shared_window ? space::shared
      : window == local_window                  ? space::local
                                                : space::global;
    const uint64_t rank = (address_in(s, o, l) & UINT32_MAX) >> rank_shift;
    const bool elsewhere =
      where == space::shared && !o.in_cluster && rank != 0 && rank != as_warp(s).block->rank + 1;
    result |= static_cast<uint32_t>(where == o.where && !elsewhere) << l;
  }
  set_lanes(s.predicates[o.p], s.active, result);
}

void trap(lane_state& s, const operation&) {
  raise(fault_kind::trap, "trap instruction", first_lane(s.active));
}

namespace {

std::string text_at(warp& w, const operation& o, uint64_t address) {
  std::string result;
  while (result.size() < 200) {
    const uint8_t* c = find_global(w, o, address + result.size(), 1, false);
    if (!c || *c == 0)
      break;
    result += *c >= 0x20 && *c < 0x7f ? static_cast<char>(*c) : '?';
  }
  return result;
}

} // namespace

void assert_failed(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const uint32_t lane = first_lane(w.active);
  const std::string condition = text_at(w, o, lane_values<uint64_t>(s, o.a)[lane]);
  const std::string file = text_at(w, o, lane_values<uint64_t>(s, o.b)[lane]);
  raise(fault_kind::assertion,
    fmt::format("assertion `{}` failed ({}:{})", condition, file.empty() ? "?" : file,
      lane_values<uint32_t>(s, o.c)[lane]),
    lane);
}

namespace {

/// Any memory that the lane may read.
class lane_memory final : public memory_reader {
public:
  lane_memory(warp& w, const operation& o, uint32_t lane) : w_(w), o_(o), lane_(lane) {}

  bool read(uint64_t address, void* to, uint64_t count) override {
    const uint64_t window = address & window_mask;
    const uint64_t offset = address & UINT32_MAX;
    const block_state& block = *w_.block;
    const uint8_t* from = nullptr;
    if (window == local_window && offset + count <= block.local_bytes)
      from = block.local + (uint64_t{w_.id} * warp_lanes + lane_) * block.local_bytes + offset;
    else if (window == shared_window && offset + count <= block.shared_bytes)
      from = block.shared + offset;
    else if (window == 0)
      from = find_global(w_, o_, address, count, false);
    if (from == nullptr)
      return false;
    std::memcpy(to, from, count);
    return true;
  }

private:
  warp& w_;
  const operation& o_;
  uint32_t lane_;
};

} // namespace

void print_call(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  w.block->printf_calls += lanes_in(s.active);
  if (w.block->printed == nullptr)
    return;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(s, l))
      continue;
    lane_memory memory(w, o, l);
    w.block->printed->add(
      format_printed(memory, lane_values<uint64_t>(s, o.a)[l], lane_values<uint64_t>(s, o.b)[l]));
  }
}

} // namespace gristmill::ptx
