#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <unordered_set>

namespace gristmill::ptx {
namespace {

struct opcode_names {
  std::unordered_set<std::string_view> rounding{
    "add", "sub", "mul", "fma", "mad", "div", "sqrt", "rcp"};
  std::unordered_set<std::string_view> approximate{
    "div", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"};
};

/// The name in the lane tables: without what changes no result here.
std::string lane_name(const assembler& as) {
  static const opcode_names names;
  const std::vector<std::string_view>& parts = as.current().opcode;
  const std::string_view base = parts.front();
  const bool is_float = parts.back().starts_with('f') || parts.back().starts_with("bf");
  // `mad` of floats is `fma` on every GPU since 2010.
  std::string name(base == "mad" && is_float ? "fma" : base);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "rn" && names.rounding.count(base))
      continue;
    if ((parts[i] == "approx" || parts[i] == "full") && names.approximate.count(base))
      continue;
    name += "." + std::string(parts[i]);
  }
  return name;
}

} // namespace

void decode_arithmetic(assembler& as) {
  const statement& s = as.current();
  // Logic of predicates: and.pred, or.pred, xor.pred, not.pred.
  if (s.opcode.size() == 2 && s.opcode[1] == "pred") {
    static const std::unordered_map<std::string_view, uint8_t> modes{
      {"and", 0}, {"or", 1}, {"xor", 2}, {"not", 3}};
    const auto mode = modes.find(s.opcode[0]);
    if (mode == modes.end())
      as.cannot("this instruction has no form for predicates");
    need_operands(as, mode->second == 3 ? 2 : 3);
    operation op;
    op.run = predicate_logic;
    op.counted = category::integer;
    op.mode = mode->second;
    op.q = as.read_predicate(s.operands[1]);
    op.r = mode->second == 3 ? 0 : as.read_predicate(s.operands[2]);
    op.imm = (s.operands[1].negated ? 1 : 0) | (mode->second != 3 && s.operands[2].negated ? 2 : 0);
    op.p = as.write_predicate(s.operands[0]);
    as.emit(op);
    return;
  }
  const lane_entry* entry = as.find_lane(lane_name(as));
  if (!entry || s.opcode.front() == "call")
    as.cannot("instruction '" + lane_name(as) + "' is not supported");
  size_t count = 0;
  while (count < 4 && entry->sources[count] != 0)
    ++count;
  need_operands(as, count + 1);
  operation op;
  op.run = entry->run;
  op.counted = entry->counted;
  op.flops = entry->flops;
  uint32_t* const sources[4] = {&op.a, &op.b, &op.c, &op.e};
  for (size_t i = 0; i < count; ++i)
    *sources[i] = as.read(s.operands[i + 1], entry->sources[i], entry->immediates);
  op.d = as.write(s.operands[0], entry->destination);
  // Chains of carries must keep their order in the timing and liveness of predicates.
  const std::string_view base = s.opcode.front();
  if (base == "addc" || base == "subc" || base == "madc")
    as.reads_predicate(1);
  if (lane_name(as).find(".cc") != std::string::npos)
    as.writes_predicate(1);
  as.emit(op);
}

void decode_testp(assembler& as) {
  const lane_entry* entry = as.find_lane(lane_name(as));
  if (!entry)
    as.cannot("instruction '" + lane_name(as) + "' is not supported");
  need_operands(as, 2);
  operation op;
  op.run = entry->run;
  op.counted = entry->counted;
  op.a = as.read(operand_at(as, 1), entry->sources[0], entry->immediates);
  op.p = as.write_predicate(operand_at(as, 0));
  as.emit(op);
}

namespace {

const compare_entry& find_compare(const assembler& as, const std::string& name) {
  static const std::unordered_map<std::string_view, const compare_entry*> table = [] {
    std::unordered_map<std::string_view, const compare_entry*> result;
    for (size_t i = 0; i < lanes().compare_size; ++i)
      result.emplace(lanes().compare[i].name, &lanes().compare[i]);
    return result;
  }();
  const auto found = table.find(name);
  if (found == table.end())
    as.cannot("comparison '" + name + "' is not supported");
  return *found->second;
}

/// Takes `.and`, `.or`, `.xor` out: how the result is combined with another predicate.
uint8_t take_combination(modifiers& m) {
  return m.take("and") ? 1 : m.take("or") ? 2 : m.take("xor") ? 3 : 0;
}

} // namespace

void decode_compare(assembler& as) {
  modifiers m(as);
  const uint8_t combination = take_combination(m);
  const compare_entry& entry = find_compare(as, m.rest());
  need_operands(as, combination ? 4 : 3);
  const std::vector<operand>& o = as.current().operands;
  operation op;
  op.run = entry.run;
  op.counted = entry.counted;
  op.mode = combination;
  op.a = as.read(o[1], entry.bytes, entry.immediates);
  op.b = as.read(o[2], entry.bytes, entry.immediates);
  if (combination) {
    op.r = as.read_predicate(o[3]);
    op.mode = static_cast<uint8_t>(op.mode | (o[3].negated ? 4 : 0));
  }
  op.p = as.write_predicate(o[0]);
  op.q = o[0].parts.empty() ? 0 : as.write_predicate(o[0].parts.front());
  as.emit(op);
}

/// set: a comparison whose result is a number.
void decode_set(assembler& as) {
  if (as.find_lane(lane_name(as))) {
    decode_arithmetic(as);
    return;
  }
  modifiers m(as);
  const uint8_t combination = take_combination(m);
  const std::string_view source = m.take_type();
  const std::string_view destination = m.take_type();
  if (destination != "u32" && destination != "s32" && destination != "f32")
    as.cannot("a result of type '" + std::string(destination) + "' is not supported");
  const compare_entry& entry = find_compare(as, m.rest() + "." + std::string(source));
  need_operands(as, combination ? 4 : 3);
  const std::vector<operand>& o = as.current().operands;
  operation compare;
  compare.run = entry.run;
  compare.mode = combination;
  compare.a = as.read(o[1], entry.bytes, entry.immediates);
  compare.b = as.read(o[2], entry.bytes, entry.immediates);
  if (combination) {
    compare.r = as.read_predicate(o[3]);
    compare.mode = static_cast<uint8_t>(compare.mode | (o[3].negated ? 4 : 0));
  }
  const uint32_t result = as.new_predicate();
  compare.p = as.writes_predicate(result);
  as.emit_hidden(compare);
  operation select;
  select.run = lanes().select[1];
  select.counted = entry.counted;
  select.a = as.constant(destination == "f32" ? 0x3f800000 : UINT32_MAX, 4);
  select.b = as.constant(0, 4);
  select.r = as.reads_predicate(result);
  select.d = as.write(o[0], 4);
  as.emit(select);
}

void decode_select(assembler& as) {
  modifiers m(as);
  const std::string_view type = m.take_type();
  m.finish();
  need_operands(as, 4);
  const uint32_t bytes = bytes_of(as, type);
  if (bytes < 2 || bytes > 8)
    as.cannot("type '" + std::string(type) + "' is not supported here");
  const std::vector<operand>& o = as.current().operands;
  const char immediates = type == "f32" ? 'f' : type == "f64" ? 'd' : 'i';
  operation op;
  op.run = lanes().select[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
  op.counted = category::integer;
  op.a = as.read(o[1], bytes, immediates);
  op.b = as.read(o[2], bytes, immediates);
  op.r = as.read_predicate(o[3]);
  op.mode = o[3].negated ? 4 : 0;
  op.d = as.write(o[0], bytes);
  as.emit(op);
}

} // namespace gristmill::ptx
