#pragma once

#include "gpu/mock/ptx/tensor_memory.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <cstdint>

/// `tcgen05` of sm_100a: products of one or of two blocks with results in tensor memory, copies to
/// it, and what orders them. Unverified on hardware: made from the PTX manual.
///
/// Each operation is executed when it is issued. What a program may see of it before it has waited
/// is a fault, see tensor_memory.hpp.
namespace gristmill::ptx {

enum class tensor_kind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// What the text of a `tcgen05.mma` says, packed into `operation::imm`.
struct tensor_form {
  tensor_kind kind = tensor_kind::f16;
  /// 1 or 2.
  uint8_t group = 1;
  /// Elements along the depth that have a scale in common: 16, 32, or 0.
  uint8_t block = 0;
  /// Sum of `tensor_flag`.
  uint8_t flags = 0;
  /// D is divided by two so many times first.
  uint8_t scale_d = 0;
  /// 32-bit registers of the mask of lanes that are not written: 0, 4 or 8, the first in `list`.
  uint8_t masks = 0;
  uint16_t unused = 0;
};
static_assert(sizeof(tensor_form) == 8);

enum tensor_flag : uint8_t {
  tensor_a_in_memory = 1,
  /// The predicate enable-input-d is to be inverted.
  tensor_not_input = 2
};

enum class tensor_shape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

/// What the text of a `tcgen05.ld` or `.st` says, packed into `operation::target`.
struct tensor_access {
  tensor_shape shape = tensor_shape::s32x32b;
  /// `.pack::16b` or `.unpack::16b`: two columns of 16 bits a register.
  bool packed = false;
  /// Columns from the first half to the second one of `.16x32bx2`.
  uint16_t split = 0;
};
static_assert(sizeof(tensor_access) == 4);

struct tensor_cell {
  uint32_t lane = 0;
  uint32_t column = 0;
};
/// Where register `i` of a thread of the warp lies, from the address on. Packed: the first of two.
tensor_cell cell_of(const tensor_access& form, uint32_t thread, uint32_t i);

/// Rows and bytes a row of a `tcgen05.cp`, packed into `operation::target`.
struct tensor_copy_form {
  uint8_t rows = 0;
  uint8_t bytes = 0;
  /// Lanes that row r goes to: r; r and r + 64; r and r + 32, from 64 on for the second half of the
  /// rows; r in each quarter of the lanes; 32 r.
  enum : uint8_t { once, pairs_02_13, pairs_01_23, four_times, four_rows } spread = once;
  /// Bits of an element that becomes one of 8: 4 or 6; 0: bytes as they are.
  uint8_t unpacks = 0;
};
static_assert(sizeof(tensor_copy_form) == 4);

/// An operand in shared memory: the descriptor of `tcgen05`, which is that of `wgmma` but for its
/// upper bits and one swizzle more.
class tensor_descriptor {
public:
  /// Raises a fault for what is none. `which`: "A", "B", ...
  tensor_descriptor(uint64_t bits, const char* which, uint32_t lane);
  /// As in `matrix_descriptor`.
  uint64_t k_major(uint32_t line, uint32_t chunk) const;
  uint64_t mn_major(uint32_t chunk, uint32_t line) const;

private:
  uint64_t bits_ = 0;
  /// Pieces of 32 bytes are permuted in rows of 128, with a period of four rows.
  bool by_32_bytes_ = false;
  const char* which_ = "";
  uint32_t lane_ = 0;
};

/// The block that works with `w`'s in operations of two; raises a fault when there is none.
block_state& other_block(warp& w, uint32_t lane);
/// Sixteen elements of 4 or 6 bits at the beginning of 16 bytes, one in each of 16 bytes: at bits 2
/// to 5, or 0 to 5.
void unpack_elements(const uint8_t* from, uint32_t bits, uint32_t* words);
/// 16 bytes of shared memory of a block of the pair.
const uint8_t* tensor_chunk(
  warp& w, block_state& owner, uint64_t address, uint32_t lane, const char* doing);

// tcgen05_ops.cpp; `mode`: the cta_group.
/// a: the shared address for the answer, b: columns.
void tensor_allocate(lane_state& s, const operation& o);
/// a: the address, b: columns.
void tensor_free(lane_state& s, const operation& o);
void tensor_relinquish(lane_state& s, const operation& o);
/// `target`: a `tensor_access`; a: the address, to which `imm` is added; `list`: the registers.
void tensor_load_registers(lane_state& s, const operation& o);
void tensor_store_registers(lane_state& s, const operation& o);
void tensor_wait_loads(lane_state& s, const operation& o);
void tensor_wait_stores(lane_state& s, const operation& o);
/// `mode` 1: after a synchronisation, 0: before one.
void tensor_fence(lane_state& s, const operation& o);
/// a: the mbarrier; c: the blocks of the cluster, when `bytes` is 2.
void tensor_commit_group(lane_state& s, const operation& o);
/// `target`: a `tensor_copy_form`; a: the address, b: the descriptor.
void tensor_copy_in(lane_state& s, const operation& o);
/// Of a block that ends: raises a fault while it has tensor memory.
void need_all_freed(const block_state& block);

// tcgen05_product_ops.cpp
/// `imm`: a `tensor_form`; d: the address of D, a: descriptor or address of A, b: descriptor of B,
/// c: the instruction descriptor; `list`: the mask, or the addresses of both scales; r:
/// enable-input-d.
void tensor_multiply(lane_state& s, const operation& o);

} // namespace gristmill::ptx
