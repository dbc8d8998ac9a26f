#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/warp.hpp"

namespace gristmill::ptx {

void decode_branch(assembler& as) {
  modifiers m(as);
  m.take("uni");
  m.finish();
  need_operands(as, 1);
  if (operand_at(as, 0).text.empty())
    as.wrong("a branch needs a label");
  as.branch(operand_at(as, 0).text);
}

void decode_indexed_branch(assembler& as) {
  modifiers m(as);
  if (!m.take("idx"))
    as.cannot("this form of brx");
  m.take("uni");
  m.finish();
  need_operands(as, 2);
  const uint32_t index = as.read(operand_at(as, 0), 4);
  as.indexed_branch(index, operand_at(as, 1).text);
}

void decode_return(assembler& as) {
  modifiers m(as);
  m.take("uni");
  m.finish();
  need_operands(as, 0);
  if (as.current().opcode.front() == "exit" && !as.is_entry()) {
    operation op;
    op.kind = flow::exit;
    op.counted = category::branch;
    as.emit(op);
    return;
  }
  as.leave();
}

/// call (result), function, (arguments);
void decode_call(assembler& as) {
  modifiers m(as);
  m.take("uni");
  m.finish();
  const std::vector<operand>& o = as.current().operands;
  size_t at = 0;
  const operand* results = nullptr;
  if (at < o.size() && o[at].kind == operand_kind::list)
    results = &o[at++];
  const operand& callee = operand_at(as, at++);
  const operand* arguments = nullptr;
  if (at < o.size() && o[at].kind == operand_kind::list)
    arguments = &o[at++];
  if (at < o.size() && callee.kind == operand_kind::symbol)
    as.wrong("the call has too many operands");
  as.call(results, callee, arguments);
}

void decode_trap(assembler& as) {
  modifiers m(as);
  m.finish();
  operation op;
  op.run = trap;
  op.counted = category::other;
  as.emit(op);
}

/// bar.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, p; bar.warp.sync mask.
/// `mode`: 0 sync, 1 arrive, 2 popc, 3 and, 4 or. `imm`: number, -1: in register a. b: threads, if
/// `elements` is 2.
void decode_barrier(assembler& as) {
  modifiers m(as);
  operation op;
  op.counted = category::barrier;
  if (m.take("warp")) {
    m.take("sync");
    m.finish();
    need_operands(as, 1);
    op.kind = flow::warp_sync;
    op.run = no_operation;
    op.e = as.read(operand_at(as, 0), 4);
    as.emit(op);
    return;
  }
  if (m.take("cluster")) {
    decode_cluster_barrier(as, m);
    return;
  }
  m.take("cta");
  m.take("aligned");
  const bool reduction = m.take("red");
  const std::string_view kind = m.take_one({"sync", "arrive", "popc", "and", "or"});
  if (kind.empty() || reduction != (kind == "popc" || kind == "and" || kind == "or"))
    as.cannot("this form of barrier");
  if (reduction)
    m.take_one({"u32", "pred"});
  m.finish();
  op.kind = flow::block_barrier;
  op.mode = kind == "sync" ? 0 : kind == "arrive" ? 1 : kind == "popc" ? 2 : kind == "and" ? 3 : 4;
  const size_t first = reduction ? 1 : 0;
  const size_t last = as.current().operands.size() - (reduction ? 1 : 0);
  if (as.current().operands.size() < first + 1 + first || last > first + 2)
    as.wrong("a barrier with the wrong number of operands");
  const operand& number = operand_at(as, first);
  op.imm = -1;
  if (number.kind == operand_kind::integer) {
    op.imm = number.integer;
    if (op.imm < 0 || op.imm > 15)
      as.wrong("a barrier has a number from 0 to 15");
  } else {
    op.a = as.read(number, 4);
  }
  if (last == first + 2) {
    op.elements = 2;
    op.b = as.read(operand_at(as, first + 1), 4);
  }
  if (op.mode == 1 && op.elements != 2)
    as.wrong("bar.arrive needs the number of threads");
  if (reduction) {
    const operand& p = operand_at(as, last);
    op.r = as.read_predicate(p);
    op.bytes = p.negated ? 1 : 0;
    if (op.mode == 2)
      op.d = as.write(operand_at(as, 0), 4);
    else
      op.p = as.write_predicate(operand_at(as, 0));
  }
  as.emit(op);
}

void decode_fence(assembler& as) {
  // Numbers do not depend on any form: warps take turns, and each sees what was written before. The
  // checks do: which writes a fence is between.
  modifiers m(as);
  operation op;
  const bool proxy = m.has("proxy");
  op.run = proxy && m.has("async") ? proxy_fence : proxy ? no_operation : memory_fence;
  op.traits = m.has("cta") ? trait_block_scope : 0;
  op.counted = category::other;
  as.emit(op);
}

void decode_sleep(assembler& as) {
  modifiers m(as);
  m.take("u32");
  m.finish();
  need_operands(as, 1);
  operation op;
  op.kind = flow::waiting;
  op.run = yield_warp;
  op.counted = category::other;
  op.a = as.read(operand_at(as, 0), 4);
  as.emit(op);
}

} // namespace gristmill::ptx
