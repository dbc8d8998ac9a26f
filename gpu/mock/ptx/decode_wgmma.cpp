#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <bit>

namespace gristmill::ptx {
namespace {

/// "m64n128k16" into N and K; zeros for what is no shape.
void read_shape(std::string_view text, uint32_t& n, uint32_t& k) {
  constexpr std::string_view head = "m64n";
  uint32_t* number = &n;
  for (const char c : text.substr(std::min(head.size(), text.size()))) {
    if (c == 'k' && number == &n)
      number = &k;
    else if (c < '0' || c > '9' || *number > 1000)
      return;
    else
      *number = *number * 10 + static_cast<uint32_t>(c - '0');
  }
}

bool types_go_together(const wgmma_form& form) {
  switch (form.d) {
  case element_type::f32:
    return (form.a == form.b
             && (form.a == element_type::f16 || form.a == element_type::bf16
               || form.a == element_type::tf32))
      || (is_float8(form.a) && is_float8(form.b));
  case element_type::f16:
    return (form.a == element_type::f16 && form.b == element_type::f16)
      || (is_float8(form.a) && is_float8(form.b));
  case element_type::s32:
    return (is_byte(form.a) && is_byte(form.b))
      || (form.a == element_type::b1 && form.b == element_type::b1);
  default:
    return false;
  }
}

/// An immediate that may be 1 or -1 (negation), or 0 or 1.
bool flag_operand(assembler& as, size_t at, bool negation) {
  const operand& o = operand_at(as, at);
  const int64_t off = negation ? 1 : 0;
  const int64_t on = negation ? -1 : 1;
  if (o.kind != operand_kind::integer || (o.integer != off && o.integer != on))
    as.wrong("operand " + std::to_string(at) + " of wgmma has to be " + std::to_string(off) + " or "
      + std::to_string(on));
  return o.integer == on;
}

/// What follows the right operand: scale-d, the negations, the transpositions.
void read_scales(assembler& as, operation& op, wgmma_form& form) {
  const bool in_registers = (form.flags & wgmma_a_in_registers) != 0;
  const bool floats = form.d != element_type::s32;
  const bool halves = form.a == element_type::f16 || form.a == element_type::bf16;
  const size_t transposes = halves ? (in_registers ? 1 : 2) : 0;
  need_operands(as, 4 + (floats ? 2 : 0) + transposes);
  op.r = as.read_predicate(operand_at(as, 3));
  uint32_t flags = 0;
  if (operand_at(as, 3).negated)
    flags |= wgmma_not_scale;
  if (floats && flag_operand(as, 4, true))
    flags |= wgmma_negate_a;
  if (floats && flag_operand(as, 5, true))
    flags |= wgmma_negate_b;
  if (transposes == 2 && flag_operand(as, 6, false))
    flags |= wgmma_transpose_a;
  if (transposes > 0 && flag_operand(as, 5 + transposes, false))
    flags |= wgmma_transpose_b;
  form.flags = static_cast<uint8_t>(form.flags | flags);
}

void decode_product(assembler& as, modifiers& m) {
  operation op = whole_warp_operation(as, wgmma_multiply, category::mma);
  wgmma_form form;
  if (m.take("satfinite"))
    form.flags = wgmma_saturate;
  const bool and_popc = m.take("and") && m.take("popc");
  const std::string text = m.rest();
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    parts.push_back(std::string_view(text).substr(at, dot - at));
    at = dot + 1;
  }
  if (parts.size() != 4)
    as.cannot("this form of wgmma.mma_async");
  uint32_t k = 0;
  uint32_t n = 0;
  read_shape(parts[0], n, k);
  form.n = static_cast<uint16_t>(n);
  form.d = element_type_of(parts[1]);
  form.a = element_type_of(parts[2]);
  form.b = element_type_of(parts[3]);
  if (!types_go_together(form) || and_popc != (form.a == element_type::b1)
    || ((form.flags & wgmma_saturate) != 0 && !is_byte(form.a)))
    as.cannot("wgmma.mma_async of types '" + text + "'");
  const bool integers = form.d == element_type::s32;
  const bool fine_n = integers ? n == 8 || n == 24 || n % 16 == 0 : n % 8 == 0;
  if (!parts[0].starts_with("m64n") || n == 0 || n > 256 || !fine_n || k * bits_of(form.a) != 256)
    as.cannot(
      "shape '" + std::string(parts[0]) + "' of wgmma.mma_async does not exist for its types");
  op.flops = 2 * 16 * n * k;

  const operand& d = operand_at(as, 0);
  const size_t results = form.d == element_type::f16 ? n / 4 : n / 2;
  if (d.kind != operand_kind::vector || d.parts.size() != results)
    as.wrong("the result of wgmma needs " + std::to_string(results) + " registers");
  std::vector<uint32_t> registers;
  for (const operand& part : d.parts) {
    as.read(part, 4, integers || form.d == element_type::f16 ? 'i' : 'f');
    registers.push_back(as.write(part, 4));
  }
  const operand& a = operand_at(as, 1);
  if (a.kind == operand_kind::vector) {
    if (a.parts.size() != 4)
      as.wrong("the left operand of wgmma needs 4 registers");
    form.flags = static_cast<uint8_t>(form.flags | wgmma_a_in_registers);
    for (const operand& part : a.parts)
      registers.push_back(as.read(part, 4));
  } else {
    op.a = as.read(a, 8);
  }
  op.b = as.read(operand_at(as, 2), 8);
  read_scales(as, op, form);
  op.imm = std::bit_cast<int64_t>(form);
  as.list(op, registers);
  as.emit(op);
}

} // namespace

void decode_wgmma(assembler& as) {
  modifiers m(as);
  const std::string_view kind = m.take_one({"mma_async", "fence", "commit_group", "wait_group"});
  if (kind.empty() || !m.take("sync") || !m.take("aligned"))
    as.cannot("this form of wgmma");
  if (kind == "mma_async") {
    if (m.has("sp"))
      as.cannot("sparse wgmma");
    decode_product(as, m);
    return;
  }
  m.finish();
  need_operands(as, kind == "wait_group" ? 1 : 0);
  operation op =
    whole_warp_operation(as, kind == "fence" ? wgmma_fence : wgmma_commit, category::other);
  if (kind == "wait_group") {
    const operand& count = operand_at(as, 0);
    if (count.kind != operand_kind::integer || count.integer < 0 || count.integer > INT32_MAX)
      as.wrong("wgmma.wait_group needs a number");
    // First the lanes of the warp come together, then the warps of the warpgroup.
    as.emit_hidden(whole_warp_operation(as, no_operation, category::other));
    op.run = wgmma_wait;
    op.kind = flow::waiting;
    op.imm = count.integer;
  }
  as.emit(op);
}

} // namespace gristmill::ptx
