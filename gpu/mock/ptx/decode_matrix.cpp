#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/matrix_shapes.hpp"

#include <algorithm>
#include <array>

namespace gristmill::ptx {
namespace {

struct shape {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;

  bool is(uint32_t rows, uint32_t columns, uint32_t depth) const {
    return m == rows && n == columns && k == depth;
  }
  bool is_big() const { return is(16, 16, 16) || is(32, 8, 16) || is(8, 32, 16); }
};

/// Takes "m16n8k32" and its like out.
shape take_shape(assembler& as, modifiers& m) {
  constexpr std::array<shape, 15> shapes{{{8, 8, 4}, {8, 8, 16}, {8, 8, 32}, {8, 8, 128},
    {16, 8, 4}, {16, 8, 8}, {16, 8, 16}, {16, 8, 32}, {16, 8, 64}, {16, 8, 128}, {16, 8, 256},
    {16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8}}};
  for (const shape& s : shapes)
    if (m.take("m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k)))
      return s;
  as.cannot("this shape of matrices");
}

struct types {
  element_type d = element_type::none;
  element_type a = element_type::none;
  element_type b = element_type::none;
  element_type c = element_type::none;
};

element_type take_element(assembler& as, modifiers& m) {
  const std::string_view name = m.take_type();
  const element_type type = element_type_of(name);
  if (type == element_type::none)
    as.cannot("'" + std::string(name) + "' is not supported in this instruction");
  return type;
}

bool is_half_sum(element_type t) {
  return t == element_type::f16 || t == element_type::f32;
}
bool is_nibble(element_type t) {
  return t == element_type::s4 || t == element_type::u4;
}

/// Whether mma.sync has this shape for these types.
bool mma_exists(const shape& s, const types& t) {
  using enum element_type;
  const bool single = t.c == f32 && t.d == f32;
  const bool whole = t.c == s32 && t.d == s32;
  const bool tall = s.m == 16 && s.n == 8;
  if (t.a == f16 && t.b == f16)
    return is_half_sum(t.c) && is_half_sum(t.d)
      && (s.is(8, 8, 4) || (t.c == t.d && tall && (s.k == 8 || s.k == 16)));
  if (t.a == bf16 && t.b == bf16)
    return single && tall && (s.k == 8 || s.k == 16);
  if (t.a == tf32 && t.b == tf32)
    return single && tall && (s.k == 4 || s.k == 8);
  if (is_float8(t.a) && is_float8(t.b))
    return is_half_sum(t.c) && t.c == t.d && tall && (s.k == 16 || s.k == 32);
  if (is_byte(t.a) && is_byte(t.b))
    return whole && (s.is(8, 8, 16) || (tall && (s.k == 16 || s.k == 32)));
  if (is_nibble(t.a) && is_nibble(t.b))
    return whole && (s.is(8, 8, 32) || (tall && (s.k == 32 || s.k == 64)));
  if (t.a == b1 && t.b == b1)
    return whole && (s.is(8, 8, 128) || (tall && (s.k == 128 || s.k == 256)));
  if (t.a == f64 && t.b == f64)
    return t.c == f64 && t.d == f64
      && (s.is(8, 8, 4) || (tall && (s.k == 4 || s.k == 8 || s.k == 16)));
  return false;
}

bool wmma_exists(const shape& s, const types& t) {
  using enum element_type;
  if (t.a != t.b)
    return false;
  const bool single = t.c == f32 && t.d == f32;
  const bool whole = t.c == s32 && t.d == s32;
  switch (t.a) {
  case f16:
    return is_half_sum(t.c) && is_half_sum(t.d) && s.is_big();
  case bf16:
    return single && s.is_big();
  case tf32:
    return single && s.is(16, 16, 8);
  case s8:
  case u8:
    return whole && s.is_big();
  case s4:
  case u4:
    return whole && s.is(8, 8, 32);
  case b1:
    return whole && s.is(8, 8, 128);
  case f64:
    return t.c == f64 && t.d == f64 && s.is(8, 8, 4);
  default:
    return false;
  }
}

/// Registers of a fragment. `wmma` fragments of f16 operands always have eight; where that is more
/// than the matrix needs, elements are held twice.
uint32_t fragment_registers(const shape& s, matrix_role role, element_type type, bool is_wmma) {
  if (is_wmma && type == element_type::f16 && role != matrix_role::sum)
    return 8;
  return matrix_registers(s.m, s.n, s.k, role, type);
}

std::vector<uint32_t> fragment(
  assembler& as, const operand& o, uint32_t count, uint32_t bytes, bool is_result) {
  const std::vector<operand> parts =
    o.kind == operand_kind::vector ? o.parts : std::vector<operand>{o};
  if (parts.size() != count)
    as.wrong("a fragment has " + std::to_string(parts.size()) + " registers instead of "
      + std::to_string(count));
  std::vector<uint32_t> result;
  for (const operand& part : parts)
    result.push_back(
      is_result ? as.write(part, bytes) : as.read(part, bytes, bytes == 8 ? 'd' : 'f'));
  return result;
}

uint32_t register_bytes(element_type type) {
  return type == element_type::f64 ? 8 : 4;
}

void emit_product(assembler& as, const shape& s, const types& t, uint8_t flags, bool is_wmma) {
  need_operands(as, 4);
  const bool quarters = !is_wmma && s.is(8, 8, 4) && t.a == element_type::f16;
  operation op =
    whole_warp_operation(as, quarters ? multiply_quarters : multiply_matrices, category::mma);
  matrix_product p;
  p.m = static_cast<uint8_t>(s.m);
  p.n = static_cast<uint8_t>(s.n);
  p.quarter_k = static_cast<uint8_t>(s.k / 4);
  p.a = t.a;
  p.b = t.b;
  p.c = t.c;
  p.d = t.d;
  p.flags = flags;
  op.imm = __builtin_bit_cast(int64_t, p);
  op.flops = 2 * s.m * s.n * s.k * (quarters ? 4 : 1);
  const auto count = [&](matrix_role role, element_type type) {
    if (quarters)
      return role != matrix_role::sum ? 2U : type == element_type::f16 ? 4U : 8U;
    return fragment_registers(s, role, type, is_wmma);
  };
  const uint32_t counts[4] = {count(matrix_role::sum, t.d), count(matrix_role::left, t.a),
    count(matrix_role::right, t.b), count(matrix_role::sum, t.c)};
  const element_type kinds[4] = {t.d, t.a, t.b, t.c};
  std::vector<uint32_t> registers;
  for (size_t i = 0; i < 4; ++i)
    for (const uint32_t r :
      fragment(as, operand_at(as, i), counts[i], register_bytes(kinds[i]), i == 0))
      registers.push_back(r);
  op.mode = static_cast<uint8_t>(counts[1]);
  op.bytes = static_cast<uint8_t>(counts[2]);
  op.elements = static_cast<uint8_t>(counts[3]);
  // The three shapes that nearly every kernel uses have a loop of their own.
  if (!is_wmma && s.m == 16 && t.c == t.d && (s.k == 8 || s.k == 16)) {
    const handler fast = t.a == element_type::bf16 ? mma_bf16
      : t.a != element_type::f16                   ? nullptr
      : t.d == element_type::f16                   ? mma_f16_to_f16
                                                   : mma_f16;
    if (fast) {
      op.run = fast;
      op.mode = static_cast<uint8_t>(s.k);
    }
  }
  as.list(op, registers);
  as.emit(op);
}

/// Takes `.and.popc` or `.xor.popc`, which single bits need, out.
uint8_t take_bit_product(modifiers& m) {
  m.take("popc");
  return m.take("and") ? matrix_and : 0;
}

} // namespace

void decode_mma(assembler& as) {
  modifiers m(as);
  if (!m.take("sync"))
    as.cannot("forms without .sync do not exist on this target");
  m.take("aligned");
  if (m.take_prefix("sp"))
    as.cannot("products of sparse matrices are not supported");
  const shape s = take_shape(as, m);
  uint8_t flags = m.take("satfinite") ? matrix_saturate : 0;
  const bool bits = m.has("b1");
  const bool has_operation = m.has("xor") || m.has("and");
  if (bits)
    flags = static_cast<uint8_t>(flags | take_bit_product(m));
  m.take("xor");
  m.take("rn");
  types t;
  t.c = take_element(as, m);
  t.b = take_element(as, m);
  t.a = take_element(as, m);
  t.d = take_element(as, m);
  // What is left are the layouts of a and b, in this order.
  const std::string layouts = m.rest();
  const bool free_layout = s.is(8, 8, 4) && t.a == element_type::f16;
  if (layouts != "row.col"
    && !(free_layout && (layouts == "row.row" || layouts == "col.row" || layouts == "col.col")))
    as.cannot("this layout of mma");
  if (!mma_exists(s, t) || bits != has_operation)
    as.cannot("mma of these types in this shape");
  if (free_layout)
    flags = static_cast<uint8_t>(flags | (layouts.starts_with("col") ? matrix_left_by_column : 0)
      | (layouts.ends_with("row") ? matrix_right_by_row : 0));
  emit_product(as, s, t, flags, false);
}

namespace {

/// wmma.load.a.sync.aligned.row.m16n16k16.global.f16 r, [p], stride; and wmma.store.d.
void decode_fragment_access(assembler& as, modifiers& m, bool load) {
  const std::string_view which = m.take_one({"a", "b", "c", "d"});
  const matrix_role role = which == "a" ? matrix_role::left
    : which == "b"                      ? matrix_role::right
                                        : matrix_role::sum;
  if (which.empty() || (which == "d") == load || (!load && role != matrix_role::sum))
    as.cannot("this form of wmma");
  const bool by_column = m.take("col");
  if (!by_column && !m.take("row"))
    as.cannot("this form of wmma");
  const shape s = take_shape(as, m);
  const space where = take_space(m);
  const element_type type = take_element(as, m);
  m.finish();
  types t{element_type::f32, type, type, element_type::f32};
  if (role == matrix_role::sum)
    t = type == element_type::s32 ? types{type,
          s.is(8, 8, 32)      ? element_type::s4
            : s.is(8, 8, 128) ? element_type::b1
                              : element_type::s8,
          {}, type}
      : type == element_type::f64
      ? types{type, type, {}, type}
      : types{type, s.is(16, 16, 8) ? element_type::tf32 : element_type::f16, {}, type};
  else if (type == element_type::f64)
    t.c = t.d = type;
  else if (bits_of(type) <= 8)
    t.c = t.d = element_type::s32;
  if (role == matrix_role::sum)
    t.b = t.a;
  if (!wmma_exists(s, t))
    as.cannot("wmma of this type in this shape");
  // Elements of less than a byte can only be read where they lie side by side.
  if (bits_of(type) < 8 && by_column != (role == matrix_role::right))
    as.cannot("this layout of wmma");
  need_operands(as, 2, 3);
  operation op = whole_warp_operation(as, load ? load_fragment : store_fragment,
    where == space::shared ? (load ? category::load_shared : category::store_shared)
                           : (load ? category::load_global : category::store_global));
  if (where != space::shared && where != space::global && where != space::generic)
    as.cannot("matrices in this space");
  as.address(op, operand_at(as, load ? 1 : 0), where);
  matrix_access access;
  access.m = static_cast<uint8_t>(s.m);
  access.n = static_cast<uint8_t>(s.n);
  access.k = static_cast<uint8_t>(s.k);
  access.type = type;
  access.role = role;
  access.by_column = by_column;
  op.target = __builtin_bit_cast(uint32_t, access);
  const uint32_t across = role == matrix_role::right ? (by_column ? s.k : s.n)
    : role == matrix_role::left                      ? (by_column ? s.m : s.k)
                                                     : (by_column ? s.m : s.n);
  op.b = as.current().operands.size() == 3 ? as.read(operand_at(as, 2), 4) : as.constant(across, 4);
  as.list(op,
    fragment(as, operand_at(as, load ? 0 : 1), fragment_registers(s, role, type, true),
      register_bytes(type), load));
  as.emit(op);
}

} // namespace

void decode_wmma(assembler& as) {
  modifiers m(as);
  const bool load = m.take("load");
  const bool store = !load && m.take("store");
  const bool product = !load && !store && m.take("mma");
  if (!m.take("sync"))
    as.cannot("forms without .sync do not exist on this target");
  m.take("aligned");
  if (load || store) {
    decode_fragment_access(as, m, load);
    return;
  }
  if (!product)
    as.cannot("this form of wmma");
  const shape s = take_shape(as, m);
  uint8_t flags = m.take("satfinite") ? matrix_saturate : 0;
  if (m.has("b1"))
    flags = static_cast<uint8_t>(flags | take_bit_product(m));
  m.take("xor");
  m.take("rn");
  types t;
  t.c = take_element(as, m);
  const bool halves = s.is_big() && is_half_sum(t.c) && !m.has("bf16");
  if (halves) {
    t.a = t.b = element_type::f16;
  } else {
    t.b = take_element(as, m);
    t.a = take_element(as, m);
  }
  t.d = take_element(as, m);
  // The layout of an operand was the matter of its load.
  const std::string layouts = m.rest();
  if (layouts != "row.col" && layouts != "row.row" && layouts != "col.row" && layouts != "col.col")
    as.cannot("this layout of wmma");
  if (!wmma_exists(s, t))
    as.cannot("wmma of these types in this shape");
  emit_product(as, s, t, flags, true);
}

void decode_movmatrix(assembler& as) {
  modifiers m(as);
  if (!m.take("sync"))
    as.cannot("forms without .sync do not exist on this target");
  m.take("aligned");
  if (!m.take("m8n8") || !m.take("trans") || !m.take("b16"))
    as.cannot("this form of movmatrix");
  m.finish();
  need_operands(as, 2);
  operation op = whole_warp_operation(as, transpose_matrix, category::shuffle);
  op.a = as.read(operand_at(as, 1), 4);
  op.d = as.write(operand_at(as, 0), 4);
  as.emit(op);
}

} // namespace gristmill::ptx
