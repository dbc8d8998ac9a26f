#pragma once

#include "gpu/mock/ptx/matrix_shapes.hpp"

#include <cstdint>

/// `wgmma`: the four warps of a warpgroup multiply 64 rows by N columns, 32 bytes deep, with
/// operands in shared memory that descriptors describe.
///
/// Each warp computes its 16 rows when it issues the instruction. What other warps may see of that
/// is settled by `wait_group`: it lets a warp go on only when all four have issued what it waits
/// for, as on hardware, where the warpgroup executes as one.
namespace gristmill::ptx {

/// What a `wgmma.mma_async` is, packed into `operation::imm`.
struct wgmma_form {
  uint16_t n = 0;
  element_type a = element_type::none;
  element_type b = element_type::none;
  element_type d = element_type::none;
  /// Sum of `wgmma_flag`.
  uint8_t flags = 0;
  uint16_t unused = 0;
};
static_assert(sizeof(wgmma_form) == 8);

enum wgmma_flag : uint8_t {
  wgmma_a_in_registers = 1,
  wgmma_negate_a = 2,
  wgmma_negate_b = 4,
  wgmma_transpose_a = 8,
  wgmma_transpose_b = 16,
  wgmma_saturate = 32,
  /// The predicate scale-d is to be inverted.
  wgmma_not_scale = 64
};

/// A matrix descriptor: addresses and strides in bytes.
struct matrix_descriptor {
  uint32_t start = 0;
  uint32_t leading = 0;
  uint32_t stride = 0;
  /// Of the pattern's start, in rows of 128 bytes.
  uint32_t base_offset = 0;
  /// 0, 32, 64 or 128.
  uint32_t swizzle = 0;

  explicit matrix_descriptor(uint64_t bits);
  /// Shared address of 16 bytes. K-major: half `chunk` (0 or 1) of the 32 bytes of row `line`.
  uint64_t k_major(uint32_t line, uint32_t chunk) const;
  /// MN-major: eight elements from row 8 `chunk` on, at depth `line`.
  uint64_t mn_major(uint32_t chunk, uint32_t line) const;

private:
  uint64_t permuted(uint64_t address) const;
};

// wgmma_ops.cpp
/// `imm`: a `wgmma_form`; `list`: the registers of d, then of a where it is in registers; a and b:
/// the descriptors; r: scale-d.
void wgmma_multiply(lane_state& s, const operation& o);
/// Orders registers and shared memory before the next product. Nothing to do where products are
/// computed as they are issued.
void wgmma_fence(lane_state& s, const operation& o);
void wgmma_commit(lane_state& s, const operation& o);
/// `imm`: groups that may still be under way.
void wgmma_wait(lane_state& s, const operation& o);

} // namespace gristmill::ptx
