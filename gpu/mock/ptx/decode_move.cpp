#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/warp.hpp"
#include "gpu/mock/ptx/width_ops.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

/// mov.b32 {lo, hi}, r and mov.b32 r, {lo, hi}.
void decode_vector_move(assembler& as, uint32_t bytes) {
  const std::vector<operand>& o = as.current().operands;
  const bool packs = o[1].kind == operand_kind::vector;
  const operand& vector = packs ? o[1] : o[0];
  const size_t count = vector.parts.size();
  if (count != 2 && count != 4)
    as.wrong("a vector of " + std::to_string(count) + " elements");
  const auto part = static_cast<uint32_t>(bytes / count);
  if (part < 1 || part > 8)
    as.wrong("a vector of elements of this size");
  operation op;
  // Registers of 8 bits have room for 16.
  const auto parts = static_cast<uint32_t>(count);
  const handler fast = packs ? lanes().pack(part, parts) : lanes().unpack(part, parts);
  op.run = part == 1  ? (packs ? pack_bytes : unpack_bytes)
    : fast != nullptr ? fast
    : packs           ? pack
                      : unpack;
  const uint32_t held = std::max(part, 2U);
  op.counted = category::integer;
  op.bytes = static_cast<uint8_t>(part);
  if (!packs)
    op.a = as.read(o[1], bytes);
  std::vector<uint32_t> registers;
  for (const operand& element : vector.parts)
    registers.push_back(packs ? as.read(element, held) : as.write(element, held));
  if (packs)
    op.d = as.write(o[0], bytes);
  as.list(op, registers);
  as.emit(op);
}

} // namespace

void decode_move(assembler& as) {
  modifiers m(as);
  const std::string_view type = m.take_type();
  m.finish();
  need_operands(as, 2);
  const std::vector<operand>& o = as.current().operands;
  if (type == "pred") {
    operation op;
    op.run = predicate_logic;
    op.counted = category::integer;
    op.mode = 4;
    op.q = as.read_predicate(o[1]);
    op.imm = o[1].negated ? 1 : 0;
    op.p = as.write_predicate(o[0]);
    as.emit(op);
    return;
  }
  const uint32_t bytes = bytes_of(as, type);
  if (bytes < 2)
    as.cannot("type '" + std::string(type) + "' is not supported here");
  if (o[0].kind == operand_kind::vector || o[1].kind == operand_kind::vector) {
    decode_vector_move(as, bytes);
    return;
  }
  operation op;
  op.run = bytes == 16 ? move_quad : lanes().move[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
  op.counted = category::integer;
  op.a = as.read(o[1], bytes, type == "f32" ? 'f' : type == "f64" ? 'd' : 'i');
  op.d = as.write(o[0], bytes);
  as.emit(op);
}

void decode_address_conversion(assembler& as) {
  modifiers m(as);
  const bool from_generic_address = m.take("to");
  const space where = take_space(m);
  const uint32_t bytes = bytes_of(as, m.take_type());
  m.finish();
  need_operands(as, 2);
  if (bytes != 8 || where == space::generic)
    as.cannot("this form of cvta");
  const std::vector<operand>& o = as.current().operands;
  operation op;
  op.counted = category::integer;
  op.where = where;
  op.bytes = 8;
  op.address_bytes = 8;
  op.a = as.read(o[1], 8);
  op.d = as.write(o[0], 8);
  if (where == space::shared || where == space::local)
    op.run = from_generic_address ? from_generic : to_generic;
  else
    op.run = lanes().move[2]; // These addresses are generic ones.
  as.emit(op);
}

void decode_is_space(assembler& as) {
  modifiers m(as);
  operation op;
  op.in_cluster = m.has("shared::cluster");
  op.where = take_space(m);
  m.finish();
  need_operands(as, 2);
  if (op.where != space::global && op.where != space::shared && op.where != space::local)
    as.cannot("this form of isspacep");
  op.run = is_in_space;
  op.counted = category::integer;
  op.address_bytes = 8;
  op.a = as.read(operand_at(as, 1), 8);
  op.p = as.write_predicate(operand_at(as, 0));
  as.emit(op);
}

} // namespace gristmill::ptx
