#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"

namespace gristmill::ptx {
namespace {

/// `.shared::cluster`, or nothing, for generic addresses.
space take_cluster_space(modifiers& m) {
  return m.take("shared::cluster") ? space::shared : space::generic;
}

uint8_t take_address_type(assembler& as, modifiers& m) {
  const std::string_view type = m.take_type();
  if (type != "u32" && type != "u64")
    as.wrong("an address has type u32 or u64");
  return type == "u32" ? 4 : 8;
}

operation simple(handler run) {
  operation op;
  op.run = run;
  return op;
}

/// The mbarrier behind st.async and red.async, which learns of bytes.
void emit_completion(assembler& as, const operand& where, uint32_t bytes) {
  operation op = simple(count_async_bytes);
  as.address(op, where, space::shared);
  if (op.imm < INT32_MIN || op.imm > INT32_MAX)
    as.cannot("this offset of an mbarrier");
  op.target = static_cast<uint32_t>(op.imm);
  op.imm = bytes;
  op.in_cluster = true;
  as.emit_hidden(op);
}

/// What st.async and red.async have in common.
void take_completion(assembler& as, modifiers& m) {
  m.take_one({"weak", "relaxed"});
  m.take("cluster");
  m.take("shared::cluster");
  if (!m.take("mbarrier::complete_tx::bytes"))
    as.cannot("a form without .mbarrier::complete_tx::bytes");
}

/// What mapa and getctarank have in common: an address as operand 1.
operation address_operation(assembler& as, handler run, size_t operands) {
  modifiers m(as);
  operation op = simple(run);
  op.counted = category::integer;
  op.address_bytes = take_address_type(as, m);
  op.where = take_cluster_space(m);
  m.finish();
  need_operands(as, operands);
  if (op.where == space::generic && op.address_bytes == 4)
    as.cannot("a generic address of 32 bits");
  op.a = as.read(operand_at(as, 1), op.address_bytes);
  return op;
}

} // namespace

void decode_map_address(assembler& as) {
  operation op = address_operation(as, map_to_rank, 3);
  op.b = as.read(operand_at(as, 2), 4);
  op.d = as.write(operand_at(as, 0), op.address_bytes);
  as.emit(op);
}

void decode_rank_of_address(assembler& as) {
  operation op = address_operation(as, rank_of_address, 2);
  op.d = as.write(operand_at(as, 0), 4);
  as.emit(op);
}

/// barrier.cluster.arrive and wait: each thread on its own, as the hardware counts them.
void decode_cluster_barrier(assembler& as, modifiers& m) {
  const bool waits = m.take("wait");
  if (!waits && !m.take("arrive"))
    as.cannot("this form of barrier");
  m.take("aligned");
  if (waits)
    m.take("acquire");
  else
    m.take_one({"release", "relaxed"});
  m.finish();
  need_operands(as, 0);
  operation op = simple(waits ? cluster_wait : cluster_arrive);
  op.kind = flow::waiting;
  op.counted = category::barrier;
  as.emit(op);
}

/// Launches come one after the other, so that whatever one depends on has been done.
void decode_grid_dependency(assembler& as) {
  modifiers m(as);
  if (m.take_one({"wait", "launch_dependents"}).empty())
    as.cannot("this form of griddepcontrol");
  m.finish();
  need_operands(as, 0);
  as.emit(simple(no_operation));
}

/// Registers are as many as a warp needs; the number is only checked.
void decode_register_count(assembler& as) {
  modifiers m(as);
  if (m.take_one({"inc", "dec"}).empty())
    as.cannot("this form of setmaxnreg");
  m.take("sync");
  m.take("aligned");
  m.take("u32");
  m.finish();
  need_operands(as, 1);
  const operand& count = operand_at(as, 0);
  if (count.kind != operand_kind::integer || count.integer < 24 || count.integer > 256
    || count.integer % 8 != 0)
    as.wrong("setmaxnreg needs a multiple of 8 from 24 to 256");
  as.emit(simple(no_operation));
}

/// st.async [a], b, [mbarrier];
void decode_store_async(assembler& as) {
  modifiers m(as);
  m.take("async");
  const std::string_view type = m.take_type();
  operation op;
  op.elements = m.take("v2") ? 2 : m.take("v4") ? 4 : 1;
  take_completion(as, m);
  m.finish();
  need_operands(as, 3);
  const uint32_t bytes = bytes_of(as, type);
  op.run = bytes == 4 || bytes == 8 ? store_handler(type, bytes) : nullptr;
  if (!op.run || bytes * op.elements > 16)
    as.cannot("st.async of this type");
  op.bytes = static_cast<uint8_t>(bytes);
  op.counted = category::store_shared;
  op.traits = trait_store;
  op.in_cluster = true;
  as.address(op, operand_at(as, 0), space::shared);
  const operand& value = operand_at(as, 1);
  const std::vector<operand> parts = op.elements == 1 ? std::vector<operand>{value} : value.parts;
  if (parts.size() != op.elements)
    as.wrong("a vector of " + std::to_string(op.elements) + " registers is needed");
  std::vector<uint32_t> registers;
  for (const operand& part : parts)
    registers.push_back(as.read(part, bytes, type == "f32" ? 'f' : type == "f64" ? 'd' : 'i'));
  as.list(op, registers);
  as.emit(op);
  emit_completion(as, operand_at(as, 2), bytes * op.elements);
}

/// red.async.op [a], b, [mbarrier];
void decode_reduction_async(assembler& as) {
  modifiers m(as);
  m.take("async");
  const std::string_view type = m.take_type();
  take_completion(as, m);
  const std::string name = m.rest();
  need_operands(as, 3);
  operation op;
  const uint32_t bytes = bytes_of(as, type);
  op.run = type == "u32" || type == "s32" || type == "u64" || type == "s64" || type == "b32"
    ? atomic_handler(name, type)
    : nullptr;
  if (!op.run || name == "exch" || name == "cas" || (bytes == 8 && name != "add"))
    as.cannot("red.async '" + name + "' of type '" + std::string(type) + "'");
  op.bytes = static_cast<uint8_t>(bytes);
  op.counted = category::atomic_shared;
  op.traits = trait_update | trait_strong;
  op.in_cluster = true;
  as.address(op, operand_at(as, 0), space::shared);
  op.b = as.read(operand_at(as, 1), bytes);
  as.emit(op);
  emit_completion(as, operand_at(as, 2), bytes);
}

} // namespace gristmill::ptx
