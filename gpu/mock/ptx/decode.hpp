#pragma once

#include "gpu/mock/ptx/assembler.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::ptx {

/// The dotted parts of the current opcode after the first. Decoders take out what they understand;
/// `finish` refuses the instruction if anything is left, so that no modifier is ever ignored by
/// accident.
class modifiers {
public:
  explicit modifiers(const assembler& as);

  /// Takes this part out, wherever it stands. Whether it was there.
  bool take(std::string_view part);
  /// The first of these that is there; empty when none is.
  std::string_view take_one(std::initializer_list<std::string_view> parts);
  /// Takes all parts with this beginning out; whether there were any.
  bool take_prefix(std::string_view prefix);
  /// Takes the last part: the type in most instructions.
  std::string_view take_type();
  bool has(std::string_view part) const;
  void finish() const;
  /// What is left, with dots between: "sat.s32".
  std::string rest() const;

private:
  const assembler& as_;
  std::vector<std::string_view> parts_;
};

/// Operand i; refuses the instruction when there are fewer.
const operand& operand_at(const assembler& as, size_t i);
/// Refuses the instruction when the number of operands is another.
void need_operands(const assembler& as, size_t count);
void need_operands(const assembler& as, size_t least, size_t most);
/// Bytes of a type that has to be one.
uint32_t bytes_of(const assembler& as, std::string_view type);
/// Counted as an asynchronous copy.
operation async_operation(handler run);
/// All 32 lanes of the warp execute it together.
operation whole_warp_operation(assembler& as, handler run, category counted);
/// The register of a shared address without offset. `bytes`: of the registers that the operation
/// has for shared addresses, 0 as long as there is none; another width is refused.
uint32_t read_plain_address(assembler& as, const operand& o, uint8_t& bytes);
/// Takes `.global`, `.shared::cta`, ... out.
space take_space(modifiers& m);
/// Takes `.relaxed.gpu` and its like out: order and scope mean nothing when warps take turns.
/// Answers the `memory_trait`s that they mean.
uint8_t take_memory_order(modifiers& m);

void decode_arithmetic(assembler& as);
void decode_compare(assembler& as);
void decode_set(assembler& as);
void decode_select(assembler& as);
void decode_testp(assembler& as);
void decode_move(assembler& as);
void decode_address_conversion(assembler& as);
void decode_is_space(assembler& as);
void decode_convert(assembler& as);
void decode_load(assembler& as);
void decode_store(assembler& as);
void decode_atomic(assembler& as);
void decode_prefetch(assembler& as);
void decode_create_policy(assembler& as);
void decode_branch(assembler& as);
void decode_indexed_branch(assembler& as);
void decode_return(assembler& as);
void decode_call(assembler& as);
void decode_trap(assembler& as);
void decode_barrier(assembler& as);
void decode_shuffle(assembler& as);
void decode_vote(assembler& as);
void decode_match(assembler& as);
void decode_reduce_lanes(assembler& as);
void decode_active_mask(assembler& as);
void decode_elect(assembler& as);
void decode_fence(assembler& as);
void decode_sleep(assembler& as);
void decode_mma(assembler& as);
void decode_wmma(assembler& as);
void decode_movmatrix(assembler& as);
void decode_matrix_access(assembler& as);
void decode_copy(assembler& as);
/// Of `cp`, when the form is one of these; "async" and "bulk" have been taken out.
void decode_tensor_copy(assembler& as, modifiers& m);
void decode_bulk_reduce(assembler& as, modifiers& m);
void decode_bulk_prefetch(assembler& as, modifiers& m);
void decode_tensor_map(assembler& as);
void decode_wgmma(assembler& as);
void decode_tcgen05(assembler& as);
void decode_mbarrier(assembler& as);
void decode_map_address(assembler& as);
void decode_rank_of_address(assembler& as);
/// Behind `barrier.cluster`, which has been taken out.
void decode_cluster_barrier(assembler& as, modifiers& m);
void decode_grid_dependency(assembler& as);
void decode_register_count(assembler& as);
void decode_store_async(assembler& as);
void decode_reduction_async(assembler& as);

} // namespace gristmill::ptx
