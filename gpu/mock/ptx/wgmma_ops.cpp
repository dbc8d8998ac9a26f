#include "gpu/mock/ptx/wgmma.hpp"

#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/resident.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#define GRISTMILL_PTX_LANES warpgroups
#include "gpu/mock/ptx/lanes/floats.hpp"

namespace gristmill::ptx {
namespace {

constexpr uint32_t rows = 16;
constexpr uint32_t columns_max = 256;
/// Every operand is 32 bytes deep: in elements, or in words of single bits.
constexpr uint32_t depth_max = 32;
constexpr uint32_t warps_of_group = 4;

uint32_t bytes_of(element_type type) {
  return type == element_type::b1 ? 4 : std::max(1U, bits_of(type) / 8);
}

/// Bytes as numbers of the arithmetic unit; `out` elements are `step` apart. Bits stay in words.
void convert(element_type type, const uint8_t* from, uint32_t bytes, float* out, uint32_t step) {
  switch (type) {
  case element_type::f16:
  case element_type::bf16:
    for (uint32_t i = 0; i < bytes / 2; ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, from + 2 * i, 2);
      out[i * step] =
        type == element_type::f16 ? warpgroups::from_half(bits) : warpgroups::from_bfloat(bits);
    }
    break;
  case element_type::e4m3:
  case element_type::e5m2: {
    const float* values = float8_numbers(type);
    for (uint32_t i = 0; i < bytes; ++i)
      out[i * step] = values[from[i]];
    break;
  }
  default: // tf32: the unit does not look at the lowest 13 bits.
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, from + 4 * i, 4);
      out[i * step] = warpgroups::from_bits(bits & 0xffffe000);
    }
  }
}

void convert(element_type type, const uint8_t* from, uint32_t bytes, int32_t* out, uint32_t step) {
  if (type == element_type::b1) {
    for (uint32_t i = 0; i < bytes / 4; ++i)
      std::memcpy(out + i * step, from + 4 * i, 4);
    return;
  }
  for (uint32_t i = 0; i < bytes; ++i)
    out[i * step] = type == element_type::s8 ? static_cast<int8_t>(from[i]) : from[i];
}

const uint8_t* chunk_at(warp& w, uint64_t address, const char* doing) {
  return need_shared(w, address, 16, false, 0, doing);
}

template <class V>
struct operands {
  V a[rows][depth_max];
  /// By depth, so that the innermost loop runs over columns.
  V b[depth_max][columns_max];
};

/// The 16 rows of this warp of the left operand.
template <class V>
void read_left(
  warp& w, const operation& o, const wgmma_form& form, uint32_t d_registers, V (*out)[depth_max]) {
  const uint32_t size = bytes_of(form.a);
  if (form.flags & wgmma_a_in_registers) {
    for (uint32_t i = 0; i < 4; ++i) {
      const auto* words = lane_values<uint32_t>(w, o.list[d_registers + i]);
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        const uint32_t byte = (l & 3) * 4 + (i >> 1) * 16;
        convert(form.a, reinterpret_cast<const uint8_t*>(words + l), 4,
          &out[(l >> 2) + (i & 1) * 8][byte / size], 1);
      }
    }
    return;
  }
  const matrix_descriptor place(lane_values<uint64_t>(w, o.a)[0]);
  const uint32_t first = (w.id % warps_of_group) * rows;
  if (form.flags & wgmma_transpose_a) {
    for (uint32_t k = 0; k < depth_max / size; ++k)
      for (uint32_t chunk = 0; chunk < rows / 8; ++chunk)
        convert(form.a, chunk_at(w, place.mn_major(first / 8 + chunk, k), "wgmma read of A"), 16,
          &out[8 * chunk][k], depth_max);
    return;
  }
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t half = 0; half < 2; ++half)
      convert(form.a, chunk_at(w, place.k_major(first + r, half), "wgmma read of A"), 16,
        &out[r][half * 16 / size], 1);
}

template <class V>
void read_right(warp& w, const operation& o, const wgmma_form& form, V (*out)[columns_max]) {
  const uint32_t size = bytes_of(form.b);
  const matrix_descriptor place(lane_values<uint64_t>(w, o.b)[0]);
  if (form.flags & wgmma_transpose_b) {
    for (uint32_t k = 0; k < depth_max / size; ++k)
      for (uint32_t chunk = 0; chunk < form.n / 8U; ++chunk)
        convert(form.b, chunk_at(w, place.mn_major(chunk, k), "wgmma read of B"), 16,
          &out[k][8 * chunk], 1);
    return;
  }
  for (uint32_t n = 0; n < form.n; ++n)
    for (uint32_t half = 0; half < 2; ++half)
      convert(form.b, chunk_at(w, place.k_major(n, half), "wgmma read of B"), 16,
        &out[half * 16 / size][n], columns_max);
}

/// Calls `f(register, lane, row, column)` for each value of the result; f16 ones come in pairs.
template <class F>
void each_result(uint32_t n, bool pairs, F&& f) {
  const uint32_t count = pairs ? n / 4 : n / 2;
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      const uint32_t row = (l >> 2) + (pairs ? i & 1 : i >> 1 & 1) * 8;
      const uint32_t column = (pairs ? i / 2 : i / 4) * 8 + (l & 3) * 2 + (pairs ? 0 : i & 1);
      f(i, l, row, column);
    }
}

void multiply_floats(warp& w, const operation& o, const wgmma_form& form, uint32_t scaled) {
  const bool pairs = form.d == element_type::f16;
  const uint32_t d_registers = pairs ? form.n / 4U : form.n / 2U;
  static thread_local operands<float> x;
  static thread_local float c[rows][columns_max];
  read_left<float>(w, o, form, d_registers, x.a);
  read_right<float>(w, o, form, x.b);
  each_result(form.n, pairs, [&](uint32_t i, uint32_t l, uint32_t row, uint32_t column) {
    const bool keep = scaled >> l & 1;
    const uint32_t word = lane_values<uint32_t>(w, o.list[i])[l];
    if (pairs) {
      c[row][column] = keep ? warpgroups::from_half(static_cast<uint16_t>(word)) : 0;
      c[row][column + 1] = keep ? warpgroups::from_half(static_cast<uint16_t>(word >> 16)) : 0;
    } else {
      c[row][column] = keep ? warpgroups::from_bits(word) : 0;
    }
  });
  const uint32_t depth = depth_max / bytes_of(form.a);
  const bool negated = ((form.flags & wgmma_negate_a) != 0) != ((form.flags & wgmma_negate_b) != 0);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t k = 0; k < depth; ++k) {
      const float left = negated ? -x.a[r][k] : x.a[r][k];
      for (uint32_t n = 0; n < form.n; ++n)
        c[r][n] += left * x.b[k][n];
    }
  each_result(form.n, pairs, [&](uint32_t i, uint32_t l, uint32_t row, uint32_t column) {
    lane_values<uint32_t>(w, o.list[i])[l] = pairs
      ? uint32_t{warpgroups::to_half(c[row][column + 1])} << 16
        | warpgroups::to_half(c[row][column])
      : warpgroups::bits(warpgroups::settled(c[row][column]));
  });
}

void multiply_integers(warp& w, const operation& o, const wgmma_form& form, uint32_t scaled) {
  static thread_local operands<int32_t> x;
  static thread_local int64_t c[rows][columns_max];
  read_left<int32_t>(w, o, form, form.n / 2U, x.a);
  read_right<int32_t>(w, o, form, x.b);
  each_result(form.n, false, [&](uint32_t i, uint32_t l, uint32_t row, uint32_t column) {
    c[row][column] = scaled >> l & 1 ? lane_values<int32_t>(w, o.list[i])[l] : 0;
  });
  const bool bits = form.a == element_type::b1;
  const uint32_t depth = depth_max / bytes_of(form.a);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t n = 0; n < form.n; ++n)
        c[r][n] += bits
          ? int64_t{lanes_in(static_cast<uint32_t>(x.a[r][k]) & static_cast<uint32_t>(x.b[k][n]))}
          : int64_t{x.a[r][k]} * x.b[k][n];
  each_result(form.n, false, [&](uint32_t i, uint32_t l, uint32_t row, uint32_t column) {
    int64_t sum = c[row][column];
    if (form.flags & wgmma_saturate)
      sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
    lane_values<uint32_t>(w, o.list[i])[l] = static_cast<uint32_t>(sum);
  });
}

/// A descriptor that the lanes do not agree on has no meaning.
void need_uniform(const uint64_t* descriptor, const char* which) {
  for (uint32_t l = 1; l < warp_lanes; ++l)
    if (descriptor[l] != descriptor[0])
      raise(fault_kind::trap,
        fmt::format("the descriptor of {} is 0x{:x} in one lane and 0x{:x} in another", which,
          descriptor[0], descriptor[l]),
        l);
}

void need_warpgroup(const warp& w) {
  if (w.full != all_lanes || w.live != all_lanes || (w.id | 3) >= warp_count(*w.block->what))
    raise(fault_kind::trap, "wgmma needs a warpgroup: four whole warps, the first a multiple of 4",
      first_lane(w.live));
}

} // namespace

matrix_descriptor::matrix_descriptor(uint64_t bits) {
  const auto field = [&](uint32_t shift) {
    return static_cast<uint32_t>(bits >> shift & 0x3fff) << 4;
  };
  start = field(0);
  leading = field(16);
  stride = field(32);
  base_offset = static_cast<uint32_t>(bits >> 49 & 7);
  const auto mode = static_cast<uint32_t>(bits >> 62);
  swizzle = mode == 0 ? 0 : 256U >> mode;
}

/// Bits of 16-byte chunks are combined with those of rows of 128 bytes, counted from where the
/// pattern starts.
uint64_t matrix_descriptor::permuted(uint64_t address) const {
  if (swizzle == 0)
    return address;
  return address ^ (((address >> 7) - base_offset) & (swizzle / 16 - 1)) << 4;
}

uint64_t matrix_descriptor::k_major(uint32_t line, uint32_t chunk) const {
  const uint64_t group = start + uint64_t{line / 8} * stride;
  if (swizzle == 0)
    return group + line % 8 * 16 + uint64_t{chunk} * leading;
  return permuted(group + line % 8 * swizzle + chunk * 16);
}

uint64_t matrix_descriptor::mn_major(uint32_t chunk, uint32_t line) const {
  if (swizzle == 0)
    return start + uint64_t{chunk} * stride + uint64_t{line / 8} * leading + line % 8 * 16;
  const uint32_t in_pattern = swizzle / 16;
  return permuted(start + uint64_t{chunk / in_pattern} * leading + chunk % in_pattern * 16
    + uint64_t{line / 8} * stride + line % 8 * swizzle);
}

void wgmma_multiply(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  need_warpgroup(w);
  const auto form = std::bit_cast<wgmma_form>(o.imm);
  const bool a_in_shared = (form.flags & wgmma_a_in_registers) == 0;
  if (a_in_shared)
    need_uniform(lane_values<uint64_t>(w, o.a), "A");
  need_uniform(lane_values<uint64_t>(w, o.b), "B");
  const uint32_t scaled = w.predicates[o.r] ^ (form.flags & wgmma_not_scale ? all_lanes : 0);
  if (form.d == element_type::s32)
    multiply_integers(w, o, form, scaled);
  else
    multiply_floats(w, o, form, scaled);
  // The warpgroup reads B once: a quarter for each warp.
  const uint64_t bytes = (a_in_shared ? rows * 32U : 0U) + form.n * 32U / warps_of_group;
  auto& n = counts_of(w, o).memory[as_counted];
  n.bytes += bytes;
  n.wavefronts += (bytes + 127) / 128;
}

void wgmma_fence(lane_state& s, const operation&) {
  need_warpgroup(as_warp(s));
}

void wgmma_commit(lane_state& s, const operation&) {
  warp& w = as_warp(s);
  need_warpgroup(w);
  ++w.block->wgmma_groups[w.id % w.block->wgmma_groups.size()];
  ++*w.block->changes;
}

void wgmma_wait(lane_state& s, const operation& o) {
  warp& w = as_warp(s);
  need_warpgroup(w);
  const auto& groups = w.block->wgmma_groups;
  const int64_t needed = int64_t{groups[w.id % groups.size()]} - o.imm;
  for (uint32_t i = 0; i < warps_of_group; ++i)
    if (groups[((w.id & ~3U) | i) % groups.size()] < needed) {
      w.again = w.yields = true;
      return;
    }
}

} // namespace gristmill::ptx
