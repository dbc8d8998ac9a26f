#include "gpu/mock/ptx/memory.hpp"

#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// Bytes to which an access has to be aligned.
uint32_t alignment(uint32_t bytes) {
  return std::min(bytes, 32U);
}

space space_of(uint64_t address) {
  const uint64_t window = address & window_mask;
  return window == shared_window ? space::shared
    : window == local_window     ? space::local
                                 : space::global;
}

size_t memory_index(const operation& o, space where) {
  if (o.where != space::generic || where == space::global)
    return as_counted;
  return where == space::shared ? generic_to_shared : generic_to_local;
}

std::string_view name_of(space where) {
  return where == space::shared ? "shared" : where == space::local ? "local" : "global";
}

/// The nearest region, to tell by how much an access missed.
std::string nearest_region(const block_state& block, uint64_t address) {
  const region* before = nullptr;
  for (const region& r : *block.memory)
    if (r.device <= address)
      before = &r;
  if (!before)
    return address < 4096 ? "a null pointer" : "below every allocation";
  const uint64_t past = address - before->device;
  if (past < before->bytes)
    return fmt::format(
      "'{}' has {} bytes and the access begins at byte {}", before->name, before->bytes, past);
  return fmt::format(
    "{} bytes past the end of '{}' ({} bytes)", past - before->bytes, before->name, before->bytes);
}

[[noreturn]] void out_of_bounds(
  warp& w, space where, uint64_t address, uint64_t bytes, uint32_t lane, bool write) {
  std::string what = fmt::format("{} of {} bytes of {} memory out of bounds at 0x{:x}",
    write ? "write" : "read", bytes, name_of(where), address);
  if (where == space::global)
    what += ": " + nearest_region(*w.block, address);
  else
    what += fmt::format(": the {} has {} bytes", where == space::shared ? "block" : "thread",
      where == space::shared ? w.block->shared_bytes : w.block->local_bytes);
  raise(fault_kind::out_of_bounds, std::move(what), lane);
}

void check_alignment(
  warp& w, const uint64_t* addresses, uint32_t bytes, uint32_t active, space where) {
  const uint64_t low = alignment(bytes) - 1;
  uint64_t any = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    any |= active >> l & 1 ? addresses[l] & low : 0;
  if (any == 0)
    return;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if ((active >> l & 1) && (addresses[l] & low))
      raise(fault_kind::misaligned,
        fmt::format("access of {} bytes of {} memory at 0x{:x}, which is not a multiple of {}",
          bytes, name_of(where), addresses[l], alignment(bytes)),
        l);
  (void)w;
}

const region* find_region(warp& w, const operation& o, uint64_t low, uint64_t high) {
  const region*& recent = counts_of(w, o).recent;
  // A range that ends before it begins has gone past the last address there is.
  const auto holds = [&](const region& r) {
    return low >= r.device && low <= high && high <= r.device + r.bytes;
  };
  if (recent && holds(*recent))
    return recent;
  const std::vector<region>& all = *w.block->memory;
  auto after = std::upper_bound(all.begin(), all.end(), low,
    [](uint64_t address, const region& r) { return address < r.device; });
  if (after == all.begin() || !holds(*--after))
    return nullptr;
  return recent = &*after;
}

void need_writable(const region& r, uint64_t address, uint64_t bytes, uint32_t lane) {
  if (!r.writable)
    raise(fault_kind::write_to_read_only,
      fmt::format(
        "write of {} bytes at 0x{:x} to '{}', which must not be written", bytes, address, r.name),
      lane);
}

void mark_written(const operation& o, const region& r, uint64_t address, uint64_t bytes) {
  if (!r.written || bytes == 0)
    return;
  const uint8_t how = o.counted == category::atomic_global ? 2 : 1;
  const uint64_t last = (address - r.device + bytes - 1) / written_grain;
  for (uint64_t grain = (address - r.device) / written_grain; grain <= last; ++grain)
    r.written[grain] = std::max(r.written[grain], how);
}

uint8_t* find_cluster(warp& w, uint64_t address, uint64_t bytes, uint32_t lane, const char* doing) {
  block_state& owner = block_of(w, address, lane);
  const uint64_t offset = address & shared_offset_mask;
  if (offset + bytes > owner.shared_bytes)
    raise(fault_kind::out_of_bounds,
      fmt::format(
        "{} of {} bytes of shared memory out of bounds at 0x{:x} of the block of rank {}: "
        "a block has {} bytes",
        doing, bytes, offset, owner.rank, owner.shared_bytes),
      lane);
  return owner.shared + offset;
}

/// Part of the active lanes, all in one space.
void resolve_scattered(warp& w, const operation& o, uint64_t* addresses, uint32_t bytes,
  uint32_t active, space where, bool write, bool through_l1, host_access& out) {
  check_alignment(w, addresses, bytes, active, where);
  if (where == space::global) {
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      low = (active >> l & 1) && addresses[l] < low ? addresses[l] : low;
      high = (active >> l & 1) && addresses[l] > high ? addresses[l] : high;
    }
    const region* all = find_region(w, o, low, high + bytes);
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      if (!(active >> l & 1))
        continue;
      const region* r = all ? all : find_region(w, o, addresses[l], addresses[l] + bytes);
      if (!r)
        out_of_bounds(w, where, addresses[l], bytes, l, write);
      if (write) {
        need_writable(*r, addresses[l], bytes, l);
        mark_written(o, *r, addresses[l], bytes);
      }
      out.lanes[l] = r->host + (addresses[l] - r->device);
    }
    const uint32_t before = w.active;
    w.active = active;
    count_global(w, o, addresses, bytes, write, through_l1);
    w.active = before;
    return;
  }
  const bool shared = where == space::shared;
  auto& n = counts_of(w, o).memory[memory_index(o, where)];
  n.bytes += uint64_t{lanes_in(active)} * bytes;
  const uint64_t size = shared ? w.block->shared_bytes : w.block->local_bytes;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    addresses[l] &= UINT32_MAX;
    if (!(active >> l & 1))
      continue;
    if (shared && addresses[l] > shared_offset_mask
      && (o.in_cluster || o.where == space::generic)) {
      out.lanes[l] = find_cluster(w, addresses[l], bytes, l, write ? "write" : "read");
      continue;
    }
    if (addresses[l] + bytes > size)
      out_of_bounds(w, where, addresses[l], bytes, l, write);
    out.lanes[l] = shared
      ? w.block->shared + addresses[l]
      : w.block->local + (uint64_t{w.id} * warp_lanes + l) * size + addresses[l];
  }
  if (shared)
    n.wavefronts += bank_wavefronts(active, addresses, bytes);
  else
    // The hardware interleaves local memory: a warp's access to one variable is contiguous.
    n.sectors += std::max<uint64_t>(1, (uint64_t{lanes_in(active)} * bytes + 31) / 32);
}

} // namespace

void addresses_of(warp& w, const operation& o, uint64_t* out) {
  if (o.address_bytes == 8) {
    const auto* a = lane_values<const uint64_t>(w, o.a);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      out[l] = a[l] + static_cast<uint64_t>(o.imm);
  } else {
    const auto* a = lane_values<const uint32_t>(w, o.a);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      out[l] = static_cast<uint32_t>(a[l] + static_cast<uint32_t>(o.imm));
  }
}

namespace {

void find_lanes(warp& w, const operation& o, uint64_t* addresses, uint32_t bytes, bool write,
  bool atomic, host_access& out) {
  if (write && !atomic)
    ++*w.block->changes;
  out.shape = host_access::scattered;
  const bool through_l1 = !atomic && (o.mode & 1) == 0;
  space where = o.where == space::parameter || o.where == space::constant ? space::global : o.where;
  if (where == space::generic) {
    const uint32_t first = first_lane(w.active);
    where = space_of(addresses[first]);
    uint32_t others = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l)
      others |= static_cast<uint32_t>(space_of(addresses[l]) != where) << l;
    others &= w.active;
    if (where != space::global) {
      auto& moved = counts_of(w, o).moved[where == space::shared ? 0 : 1];
      ++moved.instructions;
      moved.lanes += lanes_in(w.active);
    }
    if (others != 0) {
      // Lanes in different spaces: one space after the other.
      for (const space s : {space::global, space::shared, space::local}) {
        uint32_t part = 0;
        for (uint32_t l = 0; l < warp_lanes; ++l)
          part |= static_cast<uint32_t>(space_of(addresses[l]) == s) << l;
        part &= w.active;
        if (part != 0) {
          uint64_t copy[warp_lanes];
          std::copy_n(addresses, warp_lanes, copy);
          resolve_scattered(w, o, copy, bytes, part, s, write, through_l1, out);
        }
      }
      return;
    }
  }
  if (w.active == all_lanes && where != space::local && !atomic
    && (addresses[0] & (alignment(bytes) - 1)) == 0) {
    const address_pattern pattern = lanes().pattern(addresses, bytes);
    if (pattern.uniform || pattern.sequential) {
      const uint64_t length = pattern.uniform ? bytes : warp_lanes * bytes;
      auto& n = counts_of(w, o).memory[memory_index(o, where)];
      if (where == space::shared) {
        const uint64_t first = addresses[0] & UINT32_MAX;
        if (first + length <= w.block->shared_bytes) {
          n.bytes += uint64_t{warp_lanes} * bytes;
          n.wavefronts += pattern.uniform ? 1 : std::max(1U, bytes / 4);
          out.lanes[0] = w.block->shared + first;
          out.shape = pattern.uniform ? host_access::uniform : host_access::sequential;
          return;
        }
      } else if (const region* r = find_region(w, o, addresses[0], addresses[0] + length)) {
        if (write) {
          need_writable(*r, addresses[0], bytes, 0);
          mark_written(o, *r, addresses[0], length);
        }
        n.bytes += uint64_t{warp_lanes} * bytes;
        if (o.where == space::global || o.where == space::generic) {
          const uint64_t first = addresses[0] >> 5;
          const uint64_t last = (addresses[0] + length - 1) >> 5;
          n.sectors += last - first + 1;
          n.wavefronts += (last >> 2) - (first >> 2) + 1;
          if (w.block->l2) {
            // 32 lanes of 32 bytes, and not aligned to lines.
            uint64_t sectors[warp_lanes + 1];
            for (uint64_t s = first; s <= last; ++s)
              sectors[s - first] = s;
            touch_sectors(w, o, sectors, last - first + 1, write, through_l1);
          }
        }
        out.lanes[0] = r->host + (addresses[0] - r->device);
        out.shape = pattern.uniform ? host_access::uniform : host_access::sequential;
        return;
      }
    }
  }
  resolve_scattered(w, o, addresses, bytes, w.active, where, write, through_l1, out);
}

} // namespace

void resolve(warp& w, const operation& o, uint64_t* addresses, uint32_t bytes, bool write,
  bool atomic, host_access& out) {
  if (w.block->watch == nullptr) {
    find_lanes(w, o, addresses, bytes, write, atomic, out);
    return;
  }
  uint64_t as_given[warp_lanes];
  std::copy_n(addresses, warp_lanes, as_given);
  find_lanes(w, o, addresses, bytes, write, atomic, out);
  const uint8_t* places[warp_lanes];
  for (uint32_t l = 0; l < warp_lanes; ++l)
    places[l] = out.shape == host_access::uniform ? out.lanes[0]
      : out.shape == host_access::sequential      ? out.lanes[0] + size_t{l} * bytes
                                                  : out.lanes[l];
  w.block->watch->lanes_access(w, o, as_given, bytes, write, places);
}

namespace {

/// Pauses between two attempts to remember what is never the same twice.
constexpr uint32_t pause_max = 256;

/// Whether an access like it may be remembered, and where it went: not where caches look at each
/// sector, nor where somebody wants to know what was written.
bool find_range(warp& w, const operation& o, space where, uint64_t low, uint64_t high, bool write,
  access_memo& m) {
  m.in_shared = where == space::shared;
  m.in_local = where == space::local;
  m.lane_stride = 0;
  if (m.in_local) {
    m.origin = o.where == space::generic ? local_window : 0;
    m.base = nullptr;
    m.room = m.lane_stride = w.block->local_bytes;
  } else if (m.in_shared) {
    m.origin = o.where == space::generic ? shared_window : 0;
    m.base = nullptr;
    m.room = w.block->shared_bytes;
  } else {
    const region* r = find_region(w, o, low, high);
    if (!r || (write && r->written))
      return false;
    m.origin = r->device;
    m.base = r->host;
    m.room = r->bytes;
  }
  return low >= m.origin && high - m.origin <= m.room && high >= low;
}

/// Fills in all but the counts. False where nothing can be said about the next access.
bool describe_access(warp& w, const operation& o, space where, const uint64_t* addresses,
  uint32_t bytes, bool write, host_access::layout shape, access_memo& m) {
  uint64_t low = addresses[0];
  uint64_t high = addresses[0];
  for (uint32_t l = 1; l < warp_lanes; ++l) {
    low = std::min(low, addresses[l]);
    high = std::max(high, addresses[l]);
  }
  if (!find_range(w, o, where, low, high + bytes, write, m))
    return false;
  const uint64_t span = high + bytes - low;
  m.first = m.origin + (addresses[0] - low);
  m.room = m.room - span + 1;
  m.shape = shape;
  m.bytes = bytes;
  m.length = shape == host_access::uniform ? bytes : uint64_t{warp_lanes} * bytes;
  m.memory = static_cast<uint8_t>(memory_index(o, where));
  const bool moved = o.where == space::generic && where != space::global;
  m.moved = moved ? (m.in_shared ? 1 : 2) : 0;
  const bool sectors = o.where == space::global || (o.where == space::generic && !moved);
  m.is_row = sectors && shape != host_access::scattered;
  // Sectors of scattered lanes depend on where in a line the first one is, banks of narrow ones on
  // where in a word.
  m.low_bits_mask = alignment(bytes) - 1;
  if (shape == host_access::scattered)
    m.low_bits_mask |= m.in_local ? 0 : m.in_shared ? 3 : 127;
  m.low_bits = addresses[0] & m.low_bits_mask;
  if (o.address_bytes == 8) {
    for (uint32_t l = 0; l < warp_lanes; ++l)
      m.distance[l] = addresses[l] - addresses[0];
  } else {
    auto* narrow = reinterpret_cast<uint32_t*>(m.distance);
    for (uint32_t l = 0; l < warp_lanes; ++l)
      narrow[l] = static_cast<uint32_t>(addresses[l] - addresses[0]);
  }
  return true;
}

bool is_worth_remembering(access_memo& m) {
  if (m.pause > 0) {
    --m.pause;
    return false;
  }
  const bool useless = m.known && m.hits == 0;
  m.next_pause = useless ? std::min(pause_max, 2 * m.next_pause + 1) : 0;
  m.pause = m.next_pause;
  return true;
}

} // namespace

void add_remembered(access_memo& m, operation_counts& n) {
  auto& there = n.memory[m.memory];
  there.bytes += m.hits * warp_lanes * m.bytes;
  there.sectors += m.hits * m.sectors + m.row_sectors;
  there.wavefronts += m.hits * m.wavefronts + m.row_lines;
  if (m.moved != 0) {
    n.moved[m.moved - 1].instructions += m.hits;
    n.moved[m.moved - 1].lanes += m.hits * warp_lanes;
  }
  m.hits = m.row_sectors = m.row_lines = 0;
}

void look_at_access(
  lane_state& s, const operation& o, uint32_t bytes, bool write, host_access& out) {
  warp& w = as_warp(s);
  uint64_t addresses[warp_lanes];
  addresses_of(w, o, addresses);
  access_memo* const m =
    s.accesses && s.active == all_lanes && o.access != 0 ? &s.accesses[o.access] : nullptr;
  space where = o.where == space::parameter || o.where == space::constant ? space::global : o.where;
  if (where == space::generic)
    where = space_of(addresses[0]);
  if (!m || (where == space::global && w.block->l2) || !is_worth_remembering(*m)) {
    resolve(w, o, addresses, bytes, write, false, out);
    return;
  }
  operation_counts& n = counts_of(w, o);
  add_remembered(*m, n);
  m->known = false;
  uint64_t as_given[warp_lanes];
  std::copy_n(addresses, warp_lanes, as_given);
  const auto before = n.memory[memory_index(o, where)];
  resolve(w, o, addresses, bytes, write, false, out);
  if (!describe_access(w, o, where, as_given, bytes, write, out.shape, *m))
    return;
  const auto& after = n.memory[m->memory];
  m->sectors = m->is_row ? 0 : after.sectors - before.sectors;
  m->wavefronts = m->is_row ? 0 : after.wavefronts - before.wavefronts;
  m->known = true;
}

uint8_t* find_global(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write) {
  const region* r = find_region(w, o, address, address + bytes);
  if (r && write && r->writable)
    mark_written(o, *r, address, bytes);
  return r && (!write || r->writable) ? r->host + (address - r->device) : nullptr;
}

uint8_t* need_global(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write,
  uint32_t lane, const char* doing) {
  const region* r = find_region(w, o, address, address + bytes);
  if (!r)
    raise(fault_kind::out_of_bounds,
      fmt::format("{} of {} bytes of global memory out of bounds at 0x{:x}: {}", doing, bytes,
        address, nearest_region(*w.block, address)),
      lane);
  if (write) {
    need_writable(*r, address, bytes, lane);
    mark_written(o, *r, address, bytes);
    ++*w.block->changes;
  }
  if (w.block->watch)
    w.block->watch->global_range(w, o, *r, address, bytes, write, lane);
  return r->host + (address - r->device);
}

uint8_t* need_shared(
  warp& w, uint64_t address, uint64_t bytes, bool write, uint32_t lane, const char* doing) {
  address &= UINT32_MAX;
  if (address + bytes > w.block->shared_bytes)
    raise(fault_kind::out_of_bounds,
      fmt::format("{} of {} bytes of shared memory out of bounds at 0x{:x}: the block has {} bytes",
        doing, bytes, address, w.block->shared_bytes),
      lane);
  ++*w.block->changes; // It may be to write, and this is not a way by which loops look at memory.
  if (w.block->watch)
    w.block->watch->shared_range(w, *w.block, address, bytes, write, lane);
  return w.block->shared + address;
}

block_state& block_of(warp& w, uint64_t address, uint32_t lane) {
  const uint64_t mapped = (address & UINT32_MAX) >> rank_shift;
  if (mapped == 0)
    return *w.block;
  const std::vector<block_state*>& all = w.block->cluster->blocks;
  if (mapped > all.size())
    raise(fault_kind::out_of_bounds,
      fmt::format("shared address 0x{:x} is in no block of the cluster, which has {}",
        address & UINT32_MAX, all.size()),
      lane);
  block_state& other = *all[mapped - 1];
  if (other.warps_left == 0)
    raise(fault_kind::out_of_bounds,
      fmt::format("the block of rank {} has exited, and its shared memory with it", mapped - 1),
      lane);
  return other;
}

uint8_t* need_cluster(
  warp& w, uint64_t address, uint64_t bytes, bool write, uint32_t lane, const char* doing) {
  uint8_t* const found = find_cluster(w, address, bytes, lane, doing);
  if (w.block->watch)
    w.block->watch->shared_range(
      w, block_of(w, address, lane), address & shared_offset_mask, bytes, write, lane);
  return found;
}

/// Whether each of these lanes has banks of its own, so that all are served at once.
static bool fill_all_banks(
  uint32_t active, const uint64_t* addresses, uint32_t count, uint32_t words) {
  uint32_t banks = 0;
  for (uint32_t l = 0; l < count; ++l)
    banks |= uint32_t{1} << (addresses[l] / 4 & 31 & ~(words - 1));
  const uint32_t part = count == warp_lanes ? all_lanes : (1U << count) - 1;
  return (active & part) == part && lanes_in(banks) == count;
}

uint32_t bank_wavefronts(uint32_t active, const uint64_t* addresses, uint32_t bytes) {
  const uint32_t words = std::max(1U, bytes / 4);
  if (words == 1) {
    uint32_t narrow[warp_lanes];
    for (uint32_t l = 0; l < warp_lanes; ++l)
      narrow[l] = static_cast<uint32_t>(addresses[l] & UINT32_MAX) / 4;
    return active == 0 ? 0 : lanes().most_in_a_bank(active, narrow);
  }
  // A wide access is served in parts, a part of the lanes each.
  const uint32_t lanes_a_part = std::max(1U, warp_lanes / words);
  uint32_t total = 0;
  for (uint32_t from = 0; from < warp_lanes; from += lanes_a_part) {
    if (fill_all_banks(active >> from, addresses + from, lanes_a_part, words)) {
      ++total;
      continue;
    }
    uint32_t seen[32][32];
    uint8_t count[32] = {};
    uint32_t most = 0;
    for (uint32_t l = from; l < from + lanes_a_part; ++l) {
      if (!(active >> l & 1))
        continue;
      for (uint32_t k = 0; k < words; ++k) {
        const auto word = static_cast<uint32_t>(addresses[l] / 4 + k);
        const uint32_t bank = word & 31;
        uint32_t i = 0;
        while (i < count[bank] && seen[bank][i] != word)
          ++i;
        if (i < count[bank])
          continue;
        seen[bank][count[bank]++] = word;
        most = std::max<uint32_t>(most, count[bank]);
      }
    }
    total += most;
  }
  return total;
}

bool touch_sector(warp& w, uint64_t sector, bool write, bool through_l1) {
  block_state& block = *w.block;
  if (!block.l2)
    return false;
  if (!write && through_l1 && block.l1->hit(sector)) {
    ++block.done->l1_hits;
    return false;
  }
  ++block.done->l2_sectors;
  w.memory_level = std::max(w.memory_level, 1U);
  const uint32_t missing = write ? !block.l2->hit(sector) : block.l2->fetch_pair(sector);
  if (!write) {
    // Device addresses stay below 2^47, so that a number of a block fits above them.
    const uint64_t own = (block.number + 1) << 43 ^ sector;
    block.done->unshared_read_sectors += block.own->fetch_pair(own);
    block.done->crowded_read_sectors += block.crowded->fetch_pair(own);
  }
  if (missing > 0) {
    w.memory_level = 2;
    (write ? block.done->dram_write_sectors : block.done->dram_read_sectors) += missing;
  }
  return true;
}

void touch_sectors(
  warp& w, const operation& o, const uint64_t* sectors, size_t count, bool write, bool through_l1) {
  counts& done = *w.block->done;
  uint64_t line = UINT64_MAX;
  const bool atomic = o.counted == category::atomic_global;
  uint64_t read_before = done.dram_read_sectors;
  const auto end_line = [&] {
    const uint64_t read = done.dram_read_sectors - read_before;
    done.dram_lone_sectors += read <= 2 ? read : 0;
    read_before = done.dram_read_sectors;
  };
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && sectors[i] >> 2 != sectors[i - 1] >> 2)
      end_line();
    if (!touch_sector(w, sectors[i], write, through_l1) || atomic)
      continue;
    done.l2_write_sectors += write ? 1 : 0;
    if (sectors[i] >> 2 != line)
      ++(write ? done.l2_write_requests : done.l2_read_requests);
    line = sectors[i] >> 2;
  }
  end_line();
}

void count_global(warp& w, const operation& o, const uint64_t* addresses, uint32_t bytes,
  bool write, bool through_l1) {
  auto& n = counts_of(w, o).memory[as_counted];
  n.bytes += uint64_t{lanes_in(w.active)} * bytes;
  if (o.where == space::parameter || o.where == space::constant)
    return;
  // Up to two sectors a lane and 8 bytes more than a line of vectors: 32 lanes x 32 bytes.
  uint64_t sectors[warp_lanes * 2 + 2];
  size_t count = 0;
  bool sorted = true;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    for (uint64_t s = addresses[l] >> 5; s <= (addresses[l] + bytes - 1) >> 5; ++s) {
      if (count > 0 && sectors[count - 1] == s)
        continue;
      sorted = sorted && (count == 0 || sectors[count - 1] < s);
      sectors[count++] = s;
    }
  }
  if (!sorted) {
    std::sort(sectors, sectors + count);
    count = static_cast<size_t>(std::unique(sectors, sectors + count) - sectors);
  }
  for (size_t i = 0; i < count; ++i)
    n.wavefronts += i == 0 || sectors[i] >> 2 != sectors[i - 1] >> 2 ? 1U : 0U;
  touch_sectors(w, o, sectors, count, write, through_l1);
  n.sectors += count;
}

void count_range(warp& w, const operation& o, uint64_t address, uint64_t bytes, bool write) {
  auto& n = counts_of(w, o).memory[as_counted];
  n.bytes += bytes;
  const uint64_t last = (address + bytes - 1) >> 5;
  n.sectors += last - (address >> 5) + 1;
  for (uint64_t sector = address >> 5; sector <= last;) {
    // A line at a time: what one request asks for.
    uint64_t line[4];
    size_t count = 0;
    do
      line[count++] = sector++;
    while (sector <= last && (sector & 3) != 0);
    touch_sectors(w, o, line, count, write, false);
  }
}

} // namespace gristmill::ptx
