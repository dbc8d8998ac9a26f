#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/warp.hpp"

namespace gristmill::ptx {

operation whole_warp_operation(assembler& as, handler run, category counted) {
  operation op;
  op.kind = flow::warp_sync;
  op.counted = counted;
  op.run = run;
  op.e = as.constant(UINT32_MAX, 4);
  return op;
}

namespace {

operation warp_operation(handler run) {
  operation op;
  op.kind = flow::warp_sync;
  op.counted = category::shuffle;
  op.run = run;
  return op;
}

/// The predicate behind `d|p`; the sink when there is none.
uint32_t write_second(assembler& as, const operand& o) {
  return o.parts.empty() ? 0 : as.write_predicate(o.parts.front());
}

void need_sync(assembler& as, modifiers& m) {
  if (!m.take("sync"))
    as.cannot("forms without .sync do not exist on this target");
}

} // namespace

void decode_shuffle(assembler& as) {
  modifiers m(as);
  need_sync(as, m);
  operation op = warp_operation(shuffle);
  const std::string_view kind = m.take_one({"up", "down", "bfly", "idx"});
  if (kind.empty())
    as.cannot("this form of shfl");
  op.mode = kind == "up" ? 0 : kind == "down" ? 1 : kind == "bfly" ? 2 : 3;
  m.take("b32");
  m.finish();
  need_operands(as, 5);
  op.a = as.read(operand_at(as, 1), 4, 'f');
  op.b = as.read(operand_at(as, 2), 4);
  op.c = as.read(operand_at(as, 3), 4);
  op.e = as.read(operand_at(as, 4), 4);
  op.d = as.write(operand_at(as, 0), 4);
  op.p = write_second(as, operand_at(as, 0));
  as.emit(op);
}

void decode_vote(assembler& as) {
  modifiers m(as);
  need_sync(as, m);
  operation op = warp_operation(vote);
  const std::string_view kind = m.take_one({"all", "any", "uni", "ballot"});
  if (kind.empty())
    as.cannot("this form of vote");
  op.mode = kind == "all" ? 0 : kind == "any" ? 1 : kind == "uni" ? 2 : 3;
  m.take_one({"pred", "b32"});
  m.finish();
  need_operands(as, 3);
  op.r = as.read_predicate(operand_at(as, 1));
  op.imm = operand_at(as, 1).negated ? 1 : 0;
  op.e = as.read(operand_at(as, 2), 4);
  if (op.mode == 3)
    op.d = as.write(operand_at(as, 0), 4);
  else
    op.p = as.write_predicate(operand_at(as, 0));
  as.emit(op);
}

void decode_match(assembler& as) {
  modifiers m(as);
  need_sync(as, m);
  const bool any = m.take("any");
  if (!any && !m.take("all"))
    as.cannot("this form of match");
  operation op = warp_operation(any ? match_any : match_all);
  op.bytes = static_cast<uint8_t>(bytes_of(as, m.take_type()));
  m.finish();
  need_operands(as, 3);
  if (op.bytes != 4 && op.bytes != 8)
    as.cannot("this form of match");
  op.a = as.read(operand_at(as, 1), op.bytes);
  op.e = as.read(operand_at(as, 2), 4);
  op.d = as.write(operand_at(as, 0), 4);
  if (!any)
    op.p = write_second(as, operand_at(as, 0));
  as.emit(op);
}

void decode_reduce_lanes(assembler& as) {
  modifiers m(as);
  need_sync(as, m);
  const std::string_view type = m.take_type();
  const std::string_view kind = m.take_one({"add", "min", "max", "and", "or", "xor"});
  m.finish();
  if (kind.empty() || (type != "u32" && type != "s32" && type != "b32"))
    as.cannot("this form of redux");
  operation op = warp_operation(reduce_lanes);
  const uint8_t is_signed = type == "s32" ? 5 : 0;
  op.mode = kind == "add" ? 0
    : kind == "min"       ? static_cast<uint8_t>(1 + is_signed)
    : kind == "max"       ? static_cast<uint8_t>(2 + is_signed)
    : kind == "and"       ? 3
    : kind == "or"        ? 4
                          : 5;
  need_operands(as, 3);
  op.a = as.read(operand_at(as, 1), 4);
  op.e = as.read(operand_at(as, 2), 4);
  op.d = as.write(operand_at(as, 0), 4);
  as.emit(op);
}

void decode_active_mask(assembler& as) {
  modifiers m(as);
  m.take("b32");
  m.finish();
  need_operands(as, 1);
  operation op;
  op.run = active_mask;
  op.counted = category::shuffle;
  op.d = as.write(operand_at(as, 0), 4);
  as.emit(op);
}

void decode_elect(assembler& as) {
  modifiers m(as);
  need_sync(as, m);
  m.finish();
  need_operands(as, 2);
  operation op = warp_operation(elect);
  op.e = as.read(operand_at(as, 1), 4);
  op.d = as.write(operand_at(as, 0), 4);
  op.p = write_second(as, operand_at(as, 0));
  as.emit(op);
}

/// ldmatrix and stmatrix of 8x8 matrices of 16-bit values.
void decode_matrix_access(assembler& as) {
  const bool load = as.current().opcode.front() == "ldmatrix";
  modifiers m(as);
  need_sync(as, m);
  m.take("aligned");
  take_space(m);
  if (!m.take("m8n8") || !m.take("b16"))
    as.cannot("this shape; m8n8 of b16 is supported");
  operation op = warp_operation(load ? load_matrix : store_matrix);
  op.counted = load ? category::load_shared : category::store_shared;
  op.elements = m.take("x4") ? 4 : m.take("x2") ? 2 : 1;
  m.take("x1");
  op.mode = m.take("trans") ? 1 : 0;
  m.finish();
  need_operands(as, 2);
  as.address(op, operand_at(as, load ? 1 : 0), space::shared);
  const operand& o = operand_at(as, load ? 0 : 1);
  const std::vector<operand> parts =
    o.kind == operand_kind::vector ? o.parts : std::vector<operand>{o};
  if (parts.size() != op.elements)
    as.wrong("the number of registers is not that of the matrices");
  std::vector<uint32_t> registers;
  for (const operand& part : parts)
    registers.push_back(load ? as.write(part, 4) : as.read(part, 4));
  as.list(op, registers);
  op.e = as.constant(UINT32_MAX, 4);
  as.emit(op);
}

} // namespace gristmill::ptx
