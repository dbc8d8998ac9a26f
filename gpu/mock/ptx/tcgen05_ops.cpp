#include "gpu/mock/ptx/tcgen05.hpp"

#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/resident.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gristmill::ptx {
namespace {

constexpr uint32_t lanes_of_warp = 32;
/// Loads of a block that nobody has waited for; older ones are forgotten, which can only hide a
/// fault.
constexpr size_t pending_loads_max = 256;

uint32_t uniform(warp& w, uint32_t reg, const char* what) {
  const auto* values = lane_values<uint32_t>(w, reg);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l) && values[l] != values[first_lane(w.active)])
      raise(fault_kind::tensor_memory,
        fmt::format("{} is 0x{:x} in one lane and 0x{:x} in another", what,
          values[first_lane(w.active)], values[l]),
        l);
  return values[first_lane(w.active)];
}

/// Two entries of a stream are enough: the one of the current phase, and the last one before, which
/// covers all that are older.
void add_commit(mbarrier& m, uint32_t stream, uint64_t serial) {
  std::vector<tensor_commit>& all = m.commits;
  const auto is_same = [&](const tensor_commit& c) { return c.stream == stream; };
  const auto last = std::find_if(all.rbegin(), all.rend(), is_same);
  if (last != all.rend() && last->phase == m.phase) {
    last->serial = serial;
    return;
  }
  if (std::count_if(all.begin(), all.end(), is_same) > 1)
    all.erase(std::find_if(all.begin(), all.end(), is_same));
  all.push_back({stream, serial, m.phase});
  m.has_commits = true;
}

uint32_t need_columns(uint32_t columns, uint32_t lane) {
  if (columns < tensor_columns_min || columns > tensor_columns || !std::has_single_bit(columns))
    raise(fault_kind::tensor_memory,
      fmt::format("{} columns of tensor memory; a power of two from {} to {} is possible", columns,
        tensor_columns_min, tensor_columns),
      lane);
  return columns;
}

uint32_t stream_of(warp& w, uint32_t lane, bool stores) {
  return w.block->cluster->tensor.number_of(
    w.block->rank, w.id * warp_lanes + (stores ? 0 : lane), stores);
}

/// The rectangle of a load or store of this warp, after all that the manual asks of its address.
tensor_place place_of_warp(
  warp& w, const operation& o, const tensor_access& form, const char* doing) {
  const tensor_address at(
    uniform(w, o.a, "the address of tensor memory") + static_cast<uint32_t>(o.imm));
  const uint32_t lanes = form.shape == tensor_shape::s32x32b ? 32 : 16;
  const uint32_t lane = first_lane(w.active);
  const uint32_t first = w.id % 4 * lanes_of_warp;
  if (at.lane % lanes != 0 || at.lane < first || at.lane + lanes > first + lanes_of_warp)
    raise(fault_kind::tensor_memory,
      fmt::format(
        "{} of {} lanes from lane {} on: warp {} of its block reaches lanes {} to {}, from "
        "a multiple of {}",
        doing, lanes, at.lane, w.id, first, first + lanes_of_warp - 1, lanes),
      lane);
  uint32_t columns = 0;
  for (const uint32_t thread : {0U, 31U})
    columns = std::max(columns, cell_of(form, thread, o.list_size - 1).column + 1);
  if (form.packed)
    ++columns;
  need_tensor(*w.block, 0, lane);
  const tensor_place place{w.block, at.lane, lanes, at.column, columns};
  need_allocated(place, lane, doing);
  return place;
}

} // namespace

tensor_cell cell_of(const tensor_access& form, uint32_t t, uint32_t i) {
  tensor_cell c;
  switch (form.shape) {
  case tensor_shape::s32x32b:
    c = {t, i};
    break;
  case tensor_shape::s16x64b:
    c = {t / 4 + t % 2 * 8, t / 2 % 2 + 2 * i};
    break;
  case tensor_shape::s16x128b:
    c = {t / 4 + i % 2 * 8, t % 4 + i / 2 * 4};
    break;
  case tensor_shape::s16x256b:
    c = {t / 4 + i / 2 % 2 * 8, t % 4 * 2 + i % 2 + i / 4 * 8};
    break;
  case tensor_shape::s16x32bx2:
    c = {t % 16, (form.packed ? 2 * i : i) + t / 16 * form.split};
    return c;
  }
  c.column *= form.packed ? 2 : 1;
  return c;
}

block_state& other_block(warp& w, uint32_t lane) {
  const std::vector<block_state*>& all = w.block->cluster->blocks;
  const uint32_t rank = w.block->rank ^ 1;
  if (rank >= all.size())
    raise(fault_kind::tensor_memory,
      "cta_group::2 in a cluster without a second block: blocks of rank 2i and 2i + 1 are a pair",
      lane);
  if (all[rank]->warps_left == 0)
    raise(fault_kind::tensor_memory, "the other block of the pair has exited", lane);
  return *all[rank];
}

const uint8_t* tensor_chunk(
  warp& w, block_state& owner, uint64_t address, uint32_t lane, const char* doing) {
  if (address + 16 > owner.shared_bytes)
    raise(fault_kind::out_of_bounds,
      fmt::format("{} of 16 bytes of shared memory out of bounds at 0x{:x}: the block has {} bytes",
        doing, address, owner.shared_bytes),
      lane);
  if (w.block->watch)
    w.block->watch->shared_range(w, owner, address, 16, false, lane);
  return owner.shared + address;
}

tensor_descriptor::tensor_descriptor(uint64_t bits, const char* which, uint32_t lane)
  : which_(which), lane_(lane) {
  const auto mode = static_cast<uint32_t>(bits >> 61);
  const auto refuse = [&](const std::string& why) {
    raise(
      fault_kind::trap, fmt::format("the descriptor of {}, 0x{:x}, {}", which, bits, why), lane);
  };
  if ((bits >> 46 & 7) != 1)
    refuse("has not the constant 0b001 in bits 46 to 48");
  if ((bits >> 52 & 1) != 0)
    refuse("has an absolute leading dimension (bit 52), which sm_100a does not have");
  if (mode == 3 || mode == 5 || mode == 7)
    refuse(fmt::format("has the swizzle {} (bits 61 to 63); there are 0, 1, 2, 4 and 6", mode));
  by_32_bytes_ = mode == 1;
  // The upper two of the three bits mean what the two of wgmma mean.
  bits_ = by_32_bytes_ ? bits & ~(7ULL << 61) : bits;
}

uint64_t tensor_descriptor::k_major(uint32_t line, uint32_t chunk) const {
  if (by_32_bytes_)
    raise(fault_kind::trap,
      fmt::format(
        "the descriptor of {} swizzles pieces of 32 bytes, which only goes with an operand "
        "that is not K-major",
        which_),
      lane_);
  return matrix_descriptor(bits_).k_major(line, chunk);
}

uint64_t tensor_descriptor::mn_major(uint32_t chunk, uint32_t line) const {
  const matrix_descriptor d(bits_);
  if (!by_32_bytes_)
    return d.mn_major(chunk, line);
  const uint64_t address = d.start + uint64_t{chunk / 8} * d.leading + chunk % 8 * 16
    + uint64_t{line / 4} * d.stride + line % 4 * 128;
  return address ^ (address >> 7 & 3) << 5;
}

void tensor_allocate(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const uint32_t lane = first_lane(w.active);
  const uint32_t columns = need_columns(uniform(w, o.b, "the number of columns"), lane);
  if (!w.block->tensor)
    w.block->tensor = std::make_shared<tensor_memory>();
  tensor_memory& t = *w.block->tensor;
  if (!t.may_allocate)
    raise(fault_kind::tensor_memory,
      "tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same block", lane);
  need_group(t, o.mode, lane);
  if (o.mode == 2)
    other_block(w, lane);
  const uint32_t column = t.find_free(columns);
  if (column == tensor_columns) {
    w.again = w.yields = true;
    return;
  }
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  const uint64_t to = address[lane] & UINT32_MAX;
  if (to % 4 != 0)
    raise(fault_kind::misaligned,
      fmt::format("tcgen05.alloc writes to shared address 0x{:x}, not a multiple of 4", to), lane);
  std::memcpy(need_shared(w, to, 4, true, lane, "tcgen05.alloc write"), &column, 4);
  t.group = o.mode;
  t.allocate(column, columns);
  ++*w.block->changes;
}

void tensor_free(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const uint32_t lane = first_lane(w.active);
  tensor_memory& t = need_tensor(*w.block, o.mode, lane);
  const tensor_address at(uniform(w, o.a, "the address of tensor memory"));
  const uint32_t columns = uniform(w, o.b, "the number of columns");
  const auto found = std::find_if(t.allocated.begin(), t.allocated.end(),
    [&](const tensor_memory::range& r) { return r.column == at.column && r.columns == columns; });
  if (found == t.allocated.end() || at.lane != 0)
    raise(fault_kind::tensor_memory,
      fmt::format(
        "tcgen05.dealloc of {} columns from lane {}, column {} on: no tcgen05.alloc gave that",
        columns, at.lane, at.column),
      lane);
  t.allocated.erase(found);
  ++*w.block->changes;
}

void tensor_relinquish(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  if (!w.block->tensor)
    w.block->tensor = std::make_shared<tensor_memory>();
  need_group(*w.block->tensor, o.mode, first_lane(w.active));
  w.block->tensor->may_allocate = false;
}

void tensor_load_registers(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const auto form = std::bit_cast<tensor_access>(o.target);
  const tensor_place place = place_of_warp(w, o, form, "tcgen05.ld");
  tensor_memory& t = *w.block->tensor;
  const bool all_written =
    note_read(w, place, tensor_use::load, first_lane(w.active), false, "tcgen05.ld");
  if (t.loads.size() >= pending_loads_max)
    t.loads.erase(t.loads.begin());
  t.loads.push_back({w.id, number_of(w, o), place.lane, place.lanes, place.column, place.columns});
  for (uint32_t i = 0; i < o.list_size; ++i) {
    uint32_t unwritten = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      const tensor_cell c = cell_of(form, l, i);
      const uint32_t lane = place.lane + c.lane;
      const uint32_t column = place.column + c.column;
      uint32_t value = t.cell(lane, column);
      if (form.packed)
        value = (value & 0xffff) | t.cell(lane, column + 1) << 16;
      lane_values<uint32_t>(w, o.list[i])[l] = value;
      const bool nobody = t.mark_of(lane, column).serial == 0
        || (form.packed && t.mark_of(lane, column + 1).serial == 0);
      unwritten |= static_cast<uint32_t>(nobody) << l;
    }
    if (!all_written && w.block->watch)
      w.block->watch->tensor_unwritten(i, unwritten);
  }
}

void tensor_store_registers(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const auto form = std::bit_cast<tensor_access>(o.target);
  const tensor_place place = place_of_warp(w, o, form, "tcgen05.st");
  tensor_memory& t = *w.block->tensor;
  const uint32_t stream = stream_of(w, 0, true);
  const uint64_t serial = ++w.block->cluster->tensor.streams[stream].issued;
  note_write(w, o, place, tensor_use::store, first_lane(w.active), stream, serial, "tcgen05.st");
  for (uint32_t i = 0; i < o.list_size; ++i)
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      const tensor_cell c = cell_of(form, l, i);
      const uint32_t value = lane_values<uint32_t>(w, o.list[i])[l];
      uint32_t& first = t.cell(place.lane + c.lane, place.column + c.column);
      first = form.packed ? value & 0xffff : value;
      if (form.packed)
        t.cell(place.lane + c.lane, place.column + c.column + 1) = value >> 16;
    }
  ++*w.block->changes;
}

void tensor_wait_loads(lane_state& s, const operation&) {
  warp& w = as_warp(s);
  if (w.block->tensor)
    std::erase_if(
      w.block->tensor->loads, [&](const tensor_memory::pending_load& p) { return p.warp == w.id; });
}

void tensor_wait_stores(lane_state& s, const operation&) {
  warp& w = as_warp(s);
  const uint32_t stream = stream_of(w, 0, true);
  tensor_orders& orders = w.block->cluster->tensor;
  orders.learn(stream, orders.streams[stream].issued);
}

void tensor_fence(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  if (o.mode == 1)
    w.tensor_unfenced = false;
}

void tensor_commit_group(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  const std::vector<block_state*>& all = w.block->cluster->blocks;
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    const uint32_t stream = stream_of(w, l, false);
    const uint64_t serial = w.block->cluster->tensor.streams[stream].issued;
    const auto arrive = [&](uint64_t at) {
      mbarrier& m = find_mbarrier(w, at, l);
      add_commit(m, stream, serial);
      arrive_once(w, m, l);
    };
    if (o.bytes != 2) {
      arrive(address[l]);
      continue;
    }
    const uint32_t blocks = lane_values<uint16_t>(w, o.c)[l];
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if ((blocks >> rank & 1) == 0)
        continue;
      if (rank >= all.size())
        raise(fault_kind::tensor_memory,
          fmt::format("tcgen05.commit to rank {} of a cluster of {} blocks", rank, all.size()), l);
      arrive((address[l] & shared_offset_mask) | uint64_t{rank + 1} << rank_shift);
    }
  }
}

void tensor_copy_in(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const auto form = std::bit_cast<tensor_copy_form>(o.target);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    need_tensor(*w.block, o.mode, l);
    const tensor_address at(lane_values<uint32_t>(w, o.a)[l]);
    const tensor_descriptor from(lane_values<uint64_t>(w, o.b)[l], "the source", l);
    const uint32_t stream = stream_of(w, l, false);
    const uint64_t serial = ++w.block->cluster->tensor.streams[stream].issued;
    for (uint32_t block = 0; block < o.mode; ++block) {
      block_state& owner = block == 0 ? *w.block : other_block(w, l);
      const bool rows_apart = form.spread == tensor_copy_form::four_rows;
      const uint32_t lanes = rows_apart ? 3 * lanes_of_warp + 1 : tensor_lanes;
      const tensor_place place{&owner, at.lane, lanes, at.column, form.bytes / 4U};
      need_allocated(place, l, "tcgen05.cp");
      note_write(w, o, place, tensor_use::core, l, stream, serial, "tcgen05.cp");
      for (uint32_t row = 0; row < form.rows; ++row)
        for (uint32_t half = 0; half < form.bytes / 16U; ++half) {
          uint32_t words[4];
          const uint8_t* bytes =
            tensor_chunk(w, owner, from.k_major(row, half), l, "tcgen05.cp read");
          if (form.unpacks == 0)
            std::memcpy(words, bytes, 16);
          else
            unpack_elements(bytes, form.unpacks, words);
          const auto to = [&](uint32_t lane) {
            for (uint32_t i = 0; i < 4; ++i)
              owner.tensor->cell(at.lane + lane, at.column + half * 4 + i) = words[i];
          };
          switch (form.spread) {
          case tensor_copy_form::once:
            to(row);
            break;
          case tensor_copy_form::pairs_02_13:
            to(row);
            to(row + 64);
            break;
          case tensor_copy_form::pairs_01_23:
            to(row / 32 * 64 + row % 32);
            to(row / 32 * 64 + 32 + row % 32);
            break;
          case tensor_copy_form::four_times:
            for (uint32_t i = 0; i < 4; ++i)
              to(row + i * lanes_of_warp);
            break;
          case tensor_copy_form::four_rows:
            to(row * lanes_of_warp);
            break;
          }
        }
      auto& n = counts_of(w, o).memory[as_counted];
      const uint64_t bytes = uint64_t{form.rows} * form.bytes;
      n.bytes += bytes;
      n.wavefronts += (bytes + 127) / 128;
    }
    ++*w.block->changes;
  }
}

void need_all_freed(const block_state& block) {
  if (!block.tensor || block.tensor->allocated.empty())
    return;
  uint32_t columns = 0;
  for (const tensor_memory::range& r : block.tensor->allocated)
    columns += r.columns;
  raise(fault_kind::tensor_memory,
    fmt::format(
      "the block ends and {} columns of tensor memory are still allocated (tcgen05.dealloc)",
      columns),
    0);
}

} // namespace gristmill::ptx
