#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"

#include <bit>

namespace gristmill::ptx {
namespace {

constexpr uint32_t registers_of_access_max = 128;

uint8_t take_group(assembler& as, modifiers& m) {
  const std::string_view group = m.take_one({"cta_group::1", "cta_group::2"});
  if (group.empty())
    as.wrong("tcgen05 needs a .cta_group");
  return group == "cta_group::2" ? 2 : 1;
}

/// `[%r1]` or `[%r1 + 8]`: the register, and the offset into `imm` where that is allowed.
uint32_t tensor_address_of(assembler& as, const operand& o, operation* with_offset) {
  if (o.kind != operand_kind::address || o.parts.size() != 1)
    as.wrong("an address of tensor memory has to stand in brackets");
  if (o.integer != 0 && (with_offset == nullptr || o.integer < 0 || o.integer > UINT32_MAX))
    as.cannot("this offset of an address of tensor memory");
  if (with_offset != nullptr)
    with_offset->imm = o.integer;
  return as.read(o.parts.front(), 4);
}

/// Lanes of a warp come together first, then the operation may have to wait.
void emit_together(assembler& as, operation op) {
  as.emit_hidden(whole_warp_operation(as, no_operation, category::other));
  op.kind = flow::waiting;
  as.emit(op);
}

void decode_allocation(assembler& as, modifiers& m, std::string_view kind) {
  if (!m.take("sync") || !m.take("aligned"))
    as.wrong("this tcgen05 needs .sync.aligned");
  operation op = whole_warp_operation(as,
    kind == "alloc"       ? tensor_allocate
      : kind == "dealloc" ? tensor_free
                          : tensor_relinquish,
    category::other);
  op.mode = take_group(as, m);
  if (kind == "relinquish_alloc_permit") {
    m.finish();
    need_operands(as, 0);
    as.emit(op);
    return;
  }
  if (kind == "alloc")
    m.take("shared::cta");
  if (!m.take("b32"))
    as.wrong("this tcgen05 needs the type .b32");
  m.finish();
  need_operands(as, 2);
  if (kind == "dealloc") {
    op.a = as.read(operand_at(as, 0), 4);
    op.b = as.read(operand_at(as, 1), 4);
    as.emit(op);
    return;
  }
  operation waits;
  waits.run = op.run;
  waits.counted = op.counted;
  waits.mode = op.mode;
  as.address(waits, operand_at(as, 0), space::shared);
  waits.b = as.read(operand_at(as, 1), 4);
  emit_together(as, waits);
}

void decode_registers(assembler& as, modifiers& m, bool loads) {
  if (!m.take("sync") || !m.take("aligned") || !m.take("b32"))
    as.cannot("this form of tcgen05.ld or tcgen05.st");
  operation op = whole_warp_operation(
    as, loads ? tensor_load_registers : tensor_store_registers, category::other);
  tensor_access form;
  const std::string_view shape = m.take_one({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  form.shape = shape == "16x64b" ? tensor_shape::s16x64b
    : shape == "16x128b"         ? tensor_shape::s16x128b
    : shape == "16x256b"         ? tensor_shape::s16x256b
    : shape == "16x32bx2"        ? tensor_shape::s16x32bx2
                                 : tensor_shape::s32x32b;
  form.packed = m.take(loads ? "pack::16b" : "unpack::16b");
  const std::string_view times = m.take_one({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (shape.empty() || times.empty())
    as.cannot("this shape of tcgen05.ld or tcgen05.st");
  m.finish();
  uint32_t registers = 0;
  for (const char c : times.substr(1))
    registers = registers * 10 + static_cast<uint32_t>(c - '0');
  registers *= form.shape == tensor_shape::s16x128b ? 2
    : form.shape == tensor_shape::s16x256b          ? 4
                                                    : 1;
  if (registers > registers_of_access_max)
    as.wrong("this shape does not exist so many times");
  const bool halves = form.shape == tensor_shape::s16x32bx2;
  need_operands(as, halves ? 3 : 2);
  if (halves) {
    const operand& split = operand_at(as, loads ? 2 : 1);
    if (split.kind != operand_kind::integer || split.integer < 0 || split.integer >= tensor_columns)
      as.wrong("the offset of the second half has to be a number of columns");
    form.split = static_cast<uint16_t>(split.integer);
  }
  op.target = std::bit_cast<uint32_t>(form);
  op.a = tensor_address_of(as, operand_at(as, loads ? 1 : 0), &op);
  const operand& data = operand_at(as, loads ? 0 : halves ? 2 : 1);
  std::vector<uint32_t> list;
  const auto add = [&](const operand& part) {
    list.push_back(loads ? as.write(part, 4) : as.read(part, 4));
  };
  if (data.kind == operand_kind::vector)
    for (const operand& part : data.parts)
      add(part);
  else
    add(data);
  if (list.size() != registers)
    as.wrong("this shape needs " + std::to_string(registers) + " registers");
  as.list(op, list);
  as.emit(op);
}

void decode_copy_in(assembler& as, modifiers& m) {
  operation op = async_operation(tensor_copy_in);
  op.mode = take_group(as, m);
  const std::string_view shape =
    m.take_one({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  tensor_copy_form form;
  form.bytes = shape.ends_with("256b") ? 32 : 16;
  if (shape.starts_with("128x"))
    form.rows = 128;
  else if (shape.starts_with("64x"))
    form.rows = 64;
  else if (shape.starts_with("32x"))
    form.rows = 32;
  else if (shape.starts_with("4x"))
    form.rows = 4;
  if (form.rows == 4)
    form.spread = tensor_copy_form::four_rows;
  else if (form.rows == 64 && m.take("warpx2::02_13"))
    form.spread = tensor_copy_form::pairs_02_13;
  else if (form.rows == 64 && m.take("warpx2::01_23"))
    form.spread = tensor_copy_form::pairs_01_23;
  else if (form.rows == 32 && m.take("warpx4"))
    form.spread = tensor_copy_form::four_times;
  if (form.rows == 0 || (form.rows < 128 && form.spread == tensor_copy_form::once))
    as.cannot("this shape of tcgen05.cp");
  if (m.take("b8x16")) {
    const std::string_view from = m.take_one({"b4x16_p64", "b6x16_p32"});
    if (from.empty())
      as.cannot("this format of tcgen05.cp");
    form.unpacks = from.starts_with("b4") ? 4 : 6;
  }
  m.finish();
  need_operands(as, 2);
  op.target = std::bit_cast<uint32_t>(form);
  op.a = tensor_address_of(as, operand_at(as, 0), nullptr);
  op.b = as.read(operand_at(as, 1), 8);
  as.emit(op);
}

void decode_commit(assembler& as, modifiers& m) {
  operation op = async_operation(tensor_commit_group);
  op.mode = take_group(as, m);
  if (!m.take("mbarrier::arrive::one") || !m.take("b64"))
    as.cannot("this form of tcgen05.commit");
  m.take("shared::cluster");
  const bool several = m.take("multicast::cluster");
  m.finish();
  need_operands(as, several ? 2 : 1);
  as.address(op, operand_at(as, 0), space::shared);
  op.bytes = several ? 2 : 0;
  if (several)
    op.c = as.read(operand_at(as, 1), 2);
  as.emit(op);
}

tensor_form read_form(assembler& as, modifiers& m) {
  tensor_form form;
  form.group = take_group(as, m);
  const std::string_view kind = m.take_one({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8",
    "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  form.kind = kind == "kind::f16" ? tensor_kind::f16
    : kind == "kind::tf32"        ? tensor_kind::tf32
    : kind == "kind::f8f6f4"      ? tensor_kind::f8f6f4
    : kind == "kind::i8"          ? tensor_kind::i8
    : kind == "kind::mxf8f6f4"    ? tensor_kind::mxf8f6f4
    : kind == "kind::mxf4"        ? tensor_kind::mxf4
                                  : tensor_kind::mxf4nvf4;
  if (kind.empty())
    as.cannot("this kind of tcgen05.mma");
  const bool scaled = m.take("block_scale");
  if (scaled != kind.starts_with("kind::mx"))
    as.wrong("the kinds with mx, and no others, have a .block_scale");
  const std::string_view size =
    m.take_one({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
  if (!scaled && !size.empty())
    as.wrong("a size of blocks without .block_scale");
  if (scaled) {
    const bool by_16 = size == "scale_vec::4X" || size == "block16";
    const std::string_view own =
      form.kind == tensor_kind::mxf8f6f4 ? "scale_vec::1X" : "scale_vec::2X";
    const bool nv = form.kind == tensor_kind::mxf4nvf4;
    if (nv ? size.empty() || size == "scale_vec::1X"
           : !(size.empty() || size == "block32" || size == own))
      as.wrong("this kind does not have blocks of this size, or needs to say which");
    form.block = by_16 ? 16 : 32;
  }
  for (const std::string_view use :
    {"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"})
    m.take(use);
  return form;
}

void decode_product(assembler& as, modifiers& m) {
  if (m.has("sp") || m.has("ws") || m.has("ashift"))
    as.cannot("tcgen05.mma with .sp, .ws or .ashift");
  operation op;
  op.run = tensor_multiply;
  op.counted = category::mma;
  tensor_form form = read_form(as, m);
  m.finish();
  const std::vector<operand>& o = as.current().operands;
  need_operands(as, 5, 7);
  op.d = tensor_address_of(as, o[0], nullptr);
  if (o[1].kind == operand_kind::address) {
    form.flags = tensor_a_in_memory;
    op.a = tensor_address_of(as, o[1], nullptr);
  } else {
    op.a = as.read(o[1], 8);
  }
  op.b = as.read(o[2], 8);
  op.c = as.read(o[3], 4);
  size_t at = 4;
  std::vector<uint32_t> list;
  if (form.block != 0) {
    need_operands(as, 7);
    for (; at < 6; ++at)
      list.push_back(tensor_address_of(as, o[at], nullptr));
  } else if (o[4].kind == operand_kind::vector) {
    if (o[4].parts.size() != 4U * form.group)
      as.wrong("the mask of lanes needs " + std::to_string(4 * form.group) + " registers");
    for (const operand& part : o[4].parts)
      list.push_back(as.read(part, 4));
    form.masks = static_cast<uint8_t>(list.size());
    ++at;
  }
  const operand& input = operand_at(as, at++);
  op.r = as.read_predicate(input);
  if (input.negated)
    form.flags = static_cast<uint8_t>(form.flags | tensor_not_input);
  if (at < o.size()) {
    const operand& scale = o[at++];
    if ((form.kind != tensor_kind::f16 && form.kind != tensor_kind::tf32)
      || scale.kind != operand_kind::integer || scale.integer < 0 || scale.integer > 15)
      as.wrong("scale-input-d is a number from 0 to 15, of the kinds f16 and tf32");
    form.scale_d = static_cast<uint8_t>(scale.integer);
  }
  need_operands(as, at);
  op.imm = std::bit_cast<int64_t>(form);
  as.list(op, list);
  as.emit(op);
}

} // namespace

void decode_tcgen05(assembler& as) {
  modifiers m(as);
  const std::string_view kind =
    m.take_one({"alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st",
      "cp", "commit", "mma", "fence::before_thread_sync", "fence::after_thread_sync"});
  if (kind == "alloc" || kind == "dealloc" || kind == "relinquish_alloc_permit") {
    decode_allocation(as, m, kind);
  } else if (kind == "ld" || kind == "st") {
    decode_registers(as, m, kind == "ld");
  } else if (kind == "cp") {
    decode_copy_in(as, m);
  } else if (kind == "commit") {
    decode_commit(as, m);
  } else if (kind == "mma") {
    decode_product(as, m);
  } else if (kind.starts_with("wait")) {
    if (!m.take("sync") || !m.take("aligned"))
      as.wrong("tcgen05.wait needs .sync.aligned");
    m.finish();
    need_operands(as, 0);
    as.emit(whole_warp_operation(
      as, kind == "wait::ld" ? tensor_wait_loads : tensor_wait_stores, category::other));
  } else if (kind.starts_with("fence")) {
    m.finish();
    need_operands(as, 0);
    operation op;
    op.run = tensor_fence;
    op.mode = kind == "fence::after_thread_sync" ? 1 : 0;
    as.emit(op);
  } else {
    as.cannot("this form of tcgen05");
  }
}

} // namespace gristmill::ptx
