#include "gpu/mock/ptx/expansion.hpp"

#include <string>
#include <unordered_map>

namespace gristmill::ptx {
namespace {

constexpr expansion measured[] = {
#include "gpu/mock/ptx/expansion_table.inc"
};

uint16_t find(const std::string& name) {
  static const std::unordered_map<std::string_view, uint16_t> numbers = [] {
    std::unordered_map<std::string_view, uint16_t> out;
    for (size_t i = 1; i < expansions().size(); ++i)
      out.emplace(expansions()[i].name, static_cast<uint16_t>(i));
    return out;
  }();
  const auto found = numbers.find(name);
  return found == numbers.end() ? uint16_t{0} : found->second;
}

} // namespace

const std::vector<expansion>& expansions() {
  static const std::vector<expansion> all = [] {
    std::vector<expansion> out{expansion{}};
    out.insert(out.end(), std::begin(measured), std::end(measured));
    out.push_back({.name = "a name or an operand"});
    return out;
  }();
  return all;
}

uint16_t find_expansion(const statement& of) {
  const std::vector<std::string_view>& opcode = of.opcode;
  if (opcode.empty())
    return 0;
  const std::string_view base = opcode.front(), type = opcode.back();
  const bool moves = base == "mov" && of.operands.size() == 2
    && of.operands[0].kind != operand_kind::vector && of.operands[1].kind != operand_kind::vector
    && of.operands[1].kind != operand_kind::special;
  if (moves || (type == "pred" && base != "setp"))
    return static_cast<uint16_t>(expansions().size() - 1);
  std::string name;
  for (const std::string_view part : opcode)
    name += (name.empty() ? "" : ".") + std::string(part);
  if (const uint16_t found = find(name))
    return found;
  const bool wide = type.ends_with("64");
  const bool is_integer = type == "s32" || type == "u32" || type == "s64" || type == "u64";
  // Products: one of 32 bits takes an addend along.
  if (is_integer && (base == "mul" || base == "mad")) {
    if (opcode.size() == 3 && opcode[1] == "hi")
      return find(wide ? "mul.hi.u64" : "mul.hi.u32");
    if (wide)
      return find(base == "mul" ? "mul.lo.u64" : "mad.lo.u64");
    return find("mul.lo.u32");
  }
  if (base == "max" && (wide || type == "f32"))
    return find(wide ? "min.u64" : "min.f32");
  if (base == "min" && wide)
    return find("min.u64");
  // Formats: into one half of a register as into both.
  if (name == "cvt.rn.bf16.f32" || name == "cvt.rn.f16.f32")
    return find(
      std::string("cvt.rn.") + (type == "f32" && opcode[2] == "f16" ? "f16x2" : "bf16x2") + ".f32");
  return 0;
}

namespace {

expansion plain(category of) {
  switch (of) {
  case category::integer:
    return {"", 8, 5, 3, 3, 0, 0, 0};
  case category::fp32:
  case category::fp16:
    return {"", 8, 0, 8, 0, 0, 0, 0};
  case category::fp64:
    return {"", 8, 0, 0, 0, 0, 8, 0};
  case category::sfu:
    return {"", 8, 0, 0, 0, 8, 0, 0};
  case category::convert:
    return {"", 8, 8, 0, 0, 0, 0, 0};
  case category::other:
    return {};
  default:
    return {"", 8, 0, 0, 0, 0, 0, 0};
  }
}

} // namespace

void add_machine(machine_counts& to, const operation& o, uint64_t instructions) {
  const expansion is = o.expands != 0 ? expansions()[o.expands] : plain(o.counted);
  to.issue += is.issue * instructions;
  to.alu += is.alu * instructions;
  to.fma += is.fma * instructions;
  to.heavy += is.heavy * instructions;
  to.xu += is.xu * instructions;
  to.fp64 += is.fp64 * instructions;
}

uint16_t find_expansion_of_call(std::string_view function) {
  return find("call." + std::string(function));
}

} // namespace gristmill::ptx
