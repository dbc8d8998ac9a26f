#include "gpu/mock/ptx/decode.hpp"

namespace gristmill::ptx {
namespace {

handler find_convert(const std::string& name) {
  static const std::unordered_map<std::string_view, handler> table = [] {
    std::unordered_map<std::string_view, handler> result;
    for (size_t i = 0; i < lanes().convert_size; ++i)
      result.emplace(lanes().convert[i].name, lanes().convert[i].run);
    return result;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

std::string unsigned_type(uint32_t bytes) {
  return "u" + std::to_string(8 * bytes);
}

bool is_float(std::string_view type) {
  return type.starts_with('f') || type.starts_with("bf") || type.starts_with("tf");
}

/// cvt.rn.f16x2.f32 d, a, b
void decode_convert_pair(assembler& as, modifiers& m, std::string_view type) {
  operation op;
  const bool zero = m.take("rz");
  if (!zero && !m.take("rn"))
    as.cannot("this rounding is not supported in this conversion");
  op.imm = m.take("relu") ? convert_relu : 0;
  m.finish();
  need_operands(as, 3);
  op.run = lanes().convert_pair[(type == "bf16x2" ? 2 : 0) + (zero ? 1 : 0)];
  op.counted = category::convert;
  op.a = as.read(operand_at(as, 1), 4, 'f');
  op.b = as.read(operand_at(as, 2), 4, 'f');
  op.d = as.write(operand_at(as, 0), 4);
  as.emit(op);
}

/// Two floats of 4, 6 or 8 bits.
bool is_short_pair(std::string_view type) {
  return type == "e4m3x2" || type == "e5m2x2" || type == "e2m1x2" || type == "e2m3x2"
    || type == "e3m2x2";
}

/// cvt.rp.satfinite.ue8m0x2.f32 d, a, b; cvt.rn.bf16x2.ue8m0x2 d, a;
void decode_convert_scale(assembler& as, modifiers& m, std::string_view to, std::string_view from) {
  const bool makes_scales = to == "ue8m0x2";
  operation op;
  op.run = find_convert(std::string(to) + "." + std::string(from));
  const std::string_view rounding = m.take_one({"rz", "rp", "rn"});
  if (!op.run || makes_scales == (rounding == "rn") || rounding.empty())
    as.cannot("this conversion of scales is not supported");
  op.mode = rounding == "rp" ? round_up : rounding == "rz" ? round_zero : round_nearest;
  op.imm = makes_scales && m.take("satfinite") ? convert_saturate : 0;
  m.finish();
  need_operands(as, from == "f32" ? 3 : 2);
  op.counted = category::convert;
  op.a = as.read(operand_at(as, 1), makes_scales ? 4 : 2, from == "f32" ? 'f' : 'i');
  if (from == "f32")
    op.b = as.read(operand_at(as, 2), 4, 'f');
  op.d = as.write(operand_at(as, 0), makes_scales ? 2 : 4);
  as.emit(op);
}

/// cvt.rn.f16x2.e4m3x2 d, a; cvt.rn.satfinite.e4m3x2.f32 d, a, b;
void decode_convert_short(assembler& as, modifiers& m, std::string_view to, std::string_view from) {
  const bool from_floats = from == "f32";
  operation op;
  op.run = find_convert(std::string(to) + "." + std::string(from));
  if (!op.run || !m.take("rn") || is_short_pair(to) != m.take("satfinite"))
    as.cannot("this conversion of floats of 4, 6 or 8 bits is not supported");
  op.imm = m.take("relu") ? convert_relu : 0;
  m.finish();
  need_operands(as, from_floats ? 3 : 2);
  op.counted = category::convert;
  op.a = as.read(operand_at(as, 1), is_short_pair(from) ? 2 : 4, from_floats ? 'f' : 'i');
  if (from_floats)
    op.b = as.read(operand_at(as, 2), 4, 'f');
  op.d = as.write(operand_at(as, 0), is_short_pair(to) ? 2 : 4);
  as.emit(op);
}

/// Integer rounding has its own names; which of the two a conversion takes depends on its types.
uint8_t take_rounding(assembler& as, modifiers& m, std::string_view to, std::string_view from) {
  const std::string_view integral = m.take_one({"rni", "rzi", "rmi", "rpi"});
  const std::string_view plain = m.take_one({"rn", "rz", "rm", "rp", "rna"});
  const std::string_view name = integral.empty() ? plain : integral;
  const bool to_integral = !is_float(to) || to == from;
  if (name.empty()) {
    if (is_float(from) && !is_float(to))
      as.wrong("a conversion from float to integer needs a rounding");
    return round_none;
  }
  if (is_float(from) && to_integral != !integral.empty())
    as.cannot("this rounding is not supported in this conversion");
  if (name == "rna")
    return round_nearest_away;
  return name[1] == 'n' ? round_nearest
    : name[1] == 'z'    ? round_zero
    : name[1] == 'm'    ? round_down
                        : round_up;
}

} // namespace

void decode_convert(assembler& as) {
  modifiers m(as);
  const std::string_view from = m.take_type();
  const std::string_view to = m.take_type();
  if ((to == "f16x2" || to == "bf16x2") && from == "f32") {
    decode_convert_pair(as, m, to);
    return;
  }
  if (to == "ue8m0x2" || from == "ue8m0x2") {
    decode_convert_scale(as, m, to, from);
    return;
  }
  if (is_short_pair(to) || is_short_pair(from)) {
    decode_convert_short(as, m, to, from);
    return;
  }
  operation op;
  op.run = find_convert(std::string(to) + "." + std::string(from));
  if (!op.run)
    as.cannot("a conversion from '" + std::string(from) + "' to '" + std::string(to)
      + "' is not supported");
  op.counted = category::convert;
  op.mode = take_rounding(as, m, to, from);
  if (to == "tf32"
      ? op.mode != round_nearest && op.mode != round_nearest_away && op.mode != round_zero
      : op.mode == round_nearest_away)
    as.cannot("this rounding is not supported in this conversion");
  op.imm = (m.take("sat") ? convert_saturate : 0) | (m.take("relu") ? convert_relu : 0)
    | (m.take("ftz") ? convert_flush : 0);
  m.finish();
  need_operands(as, 2);
  const std::vector<operand>& o = as.current().operands;

  // Registers may be wider than the types: then only the low part counts, and results are extended.
  const uint32_t from_bytes = bytes_of(as, from);
  const uint32_t source_bytes = std::max(as.width(o[1]), from_bytes);
  if (source_bytes > from_bytes) {
    operation cut;
    cut.run = find_convert(unsigned_type(from_bytes) + "." + unsigned_type(source_bytes));
    cut.a = as.read(o[1], source_bytes);
    op.a = cut.d = as.writes(as.temporary(from_bytes));
    as.emit_hidden(cut);
    as.reads(op.a);
  } else {
    op.a = as.read(o[1], from_bytes, from == "f32" ? 'f' : from == "f64" ? 'd' : 'i');
  }
  const uint32_t to_bytes = bytes_of(as, to);
  const uint32_t target_bytes = std::max(as.width(o[0]), to_bytes);
  if (target_bytes == to_bytes) {
    op.d = as.write(o[0], to_bytes);
    as.emit(op);
    return;
  }
  op.d = as.writes(as.temporary(to_bytes));
  as.emit(op);
  operation extend;
  extend.run = find_convert((to.front() == 's' ? "s" : "u") + std::to_string(8 * target_bytes) + "."
    + (to.front() == 's' ? std::string(to) : unsigned_type(to_bytes)));
  extend.a = as.reads(op.d);
  extend.d = as.write(o[0], target_bytes);
  as.emit_hidden(extend);
}

} // namespace gristmill::ptx
