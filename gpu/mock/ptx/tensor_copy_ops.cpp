#include "gpu/mock/ptx/tensor_copy.hpp"

#include "gpu/mock/ptx/bulk_reduce.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/tensor_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gristmill::ptx {
namespace {

/// A copy addresses shared memory in units of these.
constexpr uint64_t shared_align = 128;
constexpr uint64_t map_align = 64;

using coordinates = std::array<int64_t, tensor_map_rank_max>;

void need_map_aligned(uint64_t address, const char* memory, uint32_t lane) {
  if (address % map_align != 0)
    raise(fault_kind::misaligned,
      fmt::format(
        "the tensor map at {}0x{:x} is not at a multiple of {}", memory, address, map_align),
      lane);
}

tensor_map map_of(warp& w, const operation& o, uint32_t lane) {
  const uint64_t address = lane_values<uint64_t>(w, o.list[tensor_copy_map])[lane]
    + lane_values<uint64_t>(w, o.list[tensor_copy_map_offset])[lane];
  if ((address & window_mask) != 0)
    raise(fault_kind::out_of_bounds,
      fmt::format("the tensor map at 0x{:x} is in shared or local memory; a copy takes it from a "
                  "kernel parameter, a constant or global memory",
        address),
      lane);
  need_map_aligned(address, "", lane);
  const uint8_t* image =
    need_global(w, o, address, tensor_map_bytes, false, lane, "read of a tensor map");
  tensor_map map;
  if (std::string wrong = decode_tensor_map(image, map); !wrong.empty())
    raise(fault_kind::trap, fmt::format("tensor map at 0x{:x}: {}", address, wrong), lane);
  if (map.rank != o.elements)
    raise(fault_kind::trap,
      fmt::format("a copy of {} dimensions by a tensor map of {}", o.elements, map.rank), lane);
  // What fits in no shared memory is not worth the time to look at it.
  if (map.box_bytes() > shared_bytes_max)
    raise(fault_kind::out_of_bounds,
      fmt::format("a box of {} bytes, which no shared memory holds", map.box_bytes()), lane);
  return map;
}

coordinates coordinates_of(warp& w, const operation& o, uint32_t lane) {
  coordinates at{};
  for (uint32_t i = 0; i < o.elements; ++i)
    at[i] = lane_values<int32_t>(w, o.list[tensor_copy_coordinates + i])[lane];
  return at;
}

/// An innermost line of a box: where it begins in the tile, and which part of it is inside the
/// tensor.
struct box_line {
  uint64_t tile_offset = 0;
  /// Bytes before, inside and behind; all of it is `before` when the line is outside.
  uint64_t before = 0;
  uint64_t inside = 0;
  uint64_t behind = 0;
  /// Of the first byte inside.
  uint64_t global = 0;
};

/// Bytes from one line of the tile to the next: a swizzle needs its whole span.
uint64_t line_pitch(const tensor_map& map) {
  return std::max<uint64_t>(uint64_t{map.box[0]} * bytes_of(map.type), span_of(map.swizzle));
}

template <class F>
void each_line(const tensor_map& map, const coordinates& at, F&& f) {
  const uint64_t element = bytes_of(map.type);
  const auto width = static_cast<int64_t>(map.box[0]);
  const auto size = static_cast<int64_t>(map.dims[0]);
  const int64_t low = std::clamp<int64_t>(-at[0], 0, width);
  const int64_t high = std::clamp<int64_t>(size - at[0], low, width);
  std::array<uint32_t, tensor_map_rank_max> j{};
  box_line line;
  for (;;) {
    bool inside = high > low;
    line.global = map.address + static_cast<uint64_t>(at[0] + low) * element;
    for (size_t i = 1; i < map.rank; ++i) {
      const int64_t c = at[i] + int64_t{j[i]} * map.element_strides[i];
      inside = inside && c >= 0 && static_cast<uint64_t>(c) < map.dims[i];
      line.global += static_cast<uint64_t>(c) * map.strides[i];
    }
    line.before = static_cast<uint64_t>(inside ? low : width) * element;
    line.inside = inside ? static_cast<uint64_t>(high - low) * element : 0;
    line.behind = inside ? static_cast<uint64_t>(width - high) * element : 0;
    f(line);
    line.tile_offset += line_pitch(map);
    size_t i = 1;
    while (i < map.rank && ++j[i] == map.count(i))
      j[i++] = 0;
    if (i >= map.rank)
      return;
  }
}

/// Shared memory of one tile, in 16-byte chunks that the swizzle permutes by address.
class shared_tile {
public:
  shared_tile(
    warp& w, const tensor_map& map, uint64_t address, bool write, uint32_t lane, const char* doing)
    : owner_(block_of(w, address, lane)), base_(address & shared_offset_mask),
      mask_(span_of(map.swizzle) == 0 ? 0 : span_of(map.swizzle) / 16 - 1) {
    if (base_ % shared_align != 0)
      raise(fault_kind::misaligned,
        fmt::format(
          "{} at shared 0x{:x}, which is not a multiple of {}", doing, base_, shared_align),
        lane);
    uint64_t lines = 1;
    for (size_t i = 1; i < map.rank; ++i)
      lines *= map.count(i);
    need_cluster(w, address, lines * line_pitch(map), write, lane, doing);
  }

  /// Calls `f(host pointer, bytes, bytes before)` for the pieces of a range of the tile.
  template <class F>
  void each_piece(uint64_t offset, uint64_t bytes, F&& f) const {
    if (mask_ == 0) {
      if (bytes > 0)
        f(owner_.shared + base_ + offset, bytes, uint64_t{0});
      return;
    }
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t address = base_ + offset + done;
      const uint64_t piece = std::min(16 - address % 16, bytes - done);
      f(owner_.shared + (address ^ (address >> 7 & mask_) << 4), piece, done);
      done += piece;
    }
  }

private:
  block_state& owner_;
  uint64_t base_;
  uint64_t mask_;
};

/// What an element outside the tensor is.
void fill(const tensor_map& map, uint8_t* to, uint64_t bytes) {
  if (!map.oob_nan) {
    std::memset(to, 0, bytes);
    return;
  }
  const uint64_t nan = bytes_of(map.type) == 2 ? 0x7fff'7fff'7fff'7fff
    : bytes_of(map.type) == 4                  ? 0x7fff'ffff'7fff'ffff
                                               : 0x7ff8'0000'0000'0000;
  for (uint64_t i = 0; i < bytes; i += bytes_of(map.type))
    std::memcpy(to + i, &nan, bytes_of(map.type));
}

bool flushes(const tensor_map& map) {
  return map.type == tensor_map_type::float32_ftz || map.type == tensor_map_type::tfloat32_ftz;
}

void flush(uint8_t* bytes, uint64_t count) {
  for (uint64_t i = 0; i + 4 <= count; i += 4) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes + i, 4);
    bits = (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
    std::memcpy(bytes + i, &bits, 4);
  }
}

void count_line(warp& w, const operation& o, const box_line& line, bool write) {
  if (line.inside > 0)
    count_range(w, o, line.global, line.inside, write);
}

/// The box as it lies in the tile, without swizzle.
void read_box(warp& w, const operation& o, const tensor_map& map, const coordinates& at,
  uint32_t lane, std::vector<uint8_t>& out) {
  out.clear();
  each_line(map, at, [&](const box_line& line) {
    const size_t begin = out.size();
    out.resize(begin + line.before + line.inside + line.behind);
    uint8_t* to = out.data() + begin;
    fill(map, to, line.before);
    if (line.inside > 0) {
      std::memcpy(to + line.before,
        need_global(w, o, line.global, line.inside, false, lane, "tensor copy read"), line.inside);
      if (flushes(map))
        flush(to + line.before, line.inside);
    }
    fill(map, to + line.before + line.inside, line.behind);
    count_line(w, o, line, false);
  });
}

void write_tile(warp& w, const tensor_map& map, uint64_t address, uint32_t lane,
  const std::vector<uint8_t>& box) {
  const shared_tile tile(w, map, address, true, lane, "tensor copy write");
  const uint64_t width = uint64_t{map.box[0]} * bytes_of(map.type);
  uint64_t offset = 0;
  for (uint64_t from = 0; from < box.size(); from += width, offset += line_pitch(map))
    tile.each_piece(offset, width, [&](uint8_t* to, uint64_t bytes, uint64_t done) {
      std::memcpy(to, box.data() + from + done, bytes);
    });
}

uint64_t mbarrier_address(warp& w, const operation& o, uint32_t lane) {
  const uint64_t base = register_value(w, o.list[tensor_copy_mbarrier], o.bytes, lane);
  return (base + lane_values<uint64_t>(w, o.list[tensor_copy_mbarrier_offset])[lane]) & UINT32_MAX;
}

/// The whole box is counted, whatever part of it is inside the tensor.
void complete(warp& w, const tensor_map& map, uint64_t mbarrier_at, uint32_t lane) {
  complete_bytes(w, find_mbarrier(w, mbarrier_at, lane), static_cast<int64_t>(map.box_bytes()));
}

/// The same offset in the block of that rank.
uint64_t in_block(uint64_t address, uint32_t rank) {
  return (address & shared_offset_mask) | uint64_t{rank + 1} << rank_shift;
}

/// An H200 answers both of these with an illegal instruction.
void check_coordinates(
  const operation& o, const tensor_map& map, const coordinates& at, uint32_t lane) {
  if ((at[0] * static_cast<int64_t>(bytes_of(map.type))) % 16 != 0)
    raise(fault_kind::misaligned,
      fmt::format("the innermost coordinate {} times {} bytes is not a multiple of 16", at[0],
        bytes_of(map.type)),
      lane);
  if (o.run != tensor_store && o.run != tensor_reduce)
    return;
  for (const int64_t c : at)
    if (c < 0)
      raise(fault_kind::out_of_bounds,
        fmt::format("the coordinate {} of a tensor copy to global memory is negative", c), lane);
}

/// Calls `f(warp, lane, map, coordinates, shared address)` for each active lane.
template <class F>
void each_copy(lane_state& s, const operation& o, F&& f) {
  warp& w = as_warp(s);
  uint64_t shared[warp_lanes];
  addresses_of(w, o, shared);
  for (uint32_t l = 0; l < warp_lanes; ++l)
    if (is_active(w, l)) {
      const tensor_map map = map_of(w, o, l);
      const coordinates at = coordinates_of(w, o, l);
      check_coordinates(o, map, at, l);
      f(w, l, map, at, shared[l] & UINT32_MAX);
    }
}

/// Calls `f(global, shared, bytes)` for the pieces of the box that are inside the tensor.
template <class F>
void each_stored_piece(warp& w, const operation& o, uint32_t lane, const tensor_map& map,
  const coordinates& at, uint64_t address, F&& f) {
  if (address > shared_offset_mask)
    raise(fault_kind::trap, "a tensor copy from the shared memory of another block", lane);
  const shared_tile tile(w, map, address, false, lane, "tensor copy read");
  each_line(map, at, [&](const box_line& line) {
    if (line.inside == 0)
      return;
    uint8_t* to = need_global(w, o, line.global, line.inside, true, lane, "tensor copy write");
    tile.each_piece(line.tile_offset + line.before, line.inside,
      [&](const uint8_t* from, uint64_t bytes, uint64_t done) { f(to + done, from, bytes); });
    count_line(w, o, line, true);
  });
}

} // namespace

void tensor_load(lane_state& s, const operation& o) {
  std::vector<uint8_t> box;
  each_copy(
    s, o, [&](warp& w, uint32_t l, const tensor_map& map, const coordinates& at, uint64_t shared) {
      const uint64_t mbarrier_at = mbarrier_address(w, o, l);
      read_box(w, o, map, at, l, box);
      if (o.mode == 0) {
        need_same_block(w, shared, mbarrier_at, l, "tensor copy");
        write_tile(w, map, shared, l, box);
        complete(w, map, mbarrier_at, l);
        return;
      }
      const uint32_t blocks = lane_values<uint16_t>(w, o.list[tensor_copy_blocks])[l];
      for (uint32_t rank = 0; rank < 16; ++rank)
        if (blocks >> rank & 1) {
          write_tile(w, map, in_block(shared, rank), l, box);
          complete(w, map, in_block(mbarrier_at, rank), l);
        }
    });
}

void tensor_store(lane_state& s, const operation& o) {
  each_copy(
    s, o, [&](warp& w, uint32_t l, const tensor_map& map, const coordinates& at, uint64_t shared) {
      each_stored_piece(w, o, l, map, at, shared,
        [](uint8_t* to, const uint8_t* from, uint64_t bytes) { std::memcpy(to, from, bytes); });
    });
}

void tensor_reduce(lane_state& s, const operation& o) {
  const auto how = static_cast<bulk_reduction>(o.mode);
  each_copy(
    s, o, [&](warp& w, uint32_t l, const tensor_map& map, const coordinates& at, uint64_t shared) {
      if (!reduction_exists(how, map.type))
        raise(fault_kind::trap,
          fmt::format("this reduction does not exist for elements of type {}", name(map.type)), l);
      each_stored_piece(
        w, o, l, map, at, shared, [&](uint8_t* to, const uint8_t* from, uint64_t bytes) {
          reduce_bytes(how, map.type, to, from, bytes);
        });
    });
}

void tensor_prefetch(lane_state& s, const operation& o) {
  each_copy(s, o, [&](warp& w, uint32_t l, const tensor_map& map, const coordinates& at, uint64_t) {
    each_line(map, at, [&](const box_line& line) {
      if (line.inside > 0)
        need_global(w, o, line.global, line.inside, false, l, "tensor prefetch");
      count_line(w, o, line, false);
    });
  });
}

namespace {

/// Host memory of a tensor map that may be changed.
uint8_t* map_memory(warp& w, const operation& o, uint64_t address, uint32_t lane) {
  const bool shared = o.where == space::shared
    || (o.where == space::generic && (address & window_mask) == shared_window);
  need_map_aligned(address, "", lane);
  if (shared)
    return need_shared(w, address, tensor_map_bytes, true, lane, "write of a tensor map");
  return need_global(w, o, address, tensor_map_bytes, true, lane, "write of a tensor map");
}

} // namespace

void replace_in_tensor_map(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  uint64_t address[warp_lanes];
  addresses_of(w, o, address);
  for (uint32_t l = 0; l < warp_lanes; ++l) {
    if (!is_active(w, l))
      continue;
    const std::string wrong = replace_field(map_memory(w, o, address[l], l),
      static_cast<tensor_map_field>(o.mode), o.target, register_value(w, o.b, o.bytes, l));
    if (!wrong.empty())
      raise(fault_kind::trap, "tensormap.replace: " + wrong, l);
  }
}

void copy_tensor_map(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  const uint32_t lane = first_lane(w.active);
  uint64_t to[warp_lanes];
  addresses_of(w, o, to);
  const uint64_t from = register_value(w, o.b, o.bytes, lane) & UINT32_MAX;
  need_map_aligned(from, "shared ", lane);
  const uint8_t* source =
    need_shared(w, from, tensor_map_bytes, false, lane, "read of a tensor map");
  std::memcpy(map_memory(w, o, to[lane], lane), source, tensor_map_bytes);
}

} // namespace gristmill::ptx
