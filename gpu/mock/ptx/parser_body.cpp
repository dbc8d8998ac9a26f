#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/numbers.hpp"
#include "gpu/mock/ptx/parser.hpp"

#include <limits>

namespace gristmill::ptx {

void parser::open_scope(function_syntax& f, uint32_t parent) {
  names inner;
  inner.scope = static_cast<uint32_t>(f.scopes.size());
  f.scopes.push_back({parent, {}, {}});
  scopes_.push_back(std::move(inner));
}

void parser::body(function_syntax& f) {
  expect("{");
  open_scope(f, 0);
  const size_t outermost = scopes_.size();
  for (;;) {
    token word = in_.next();
    if (word.kind == token_kind::end) {
      refuse(word.line, "the body of function '" + std::string(f.name) + "' is not closed");
    } else if (word.is("{")) {
      if (scopes_.size() > scope_depth_max)
        refuse(word.line, "scopes are nested too deeply");
      open_scope(f, scopes_.back().scope);
    } else if (word.is("}")) {
      const bool last = scopes_.size() == outermost;
      scopes_.pop_back();
      if (last) {
        scopes_.clear();
        return;
      }
    } else if (word.kind == token_kind::word && word.text.front() == '.') {
      body_directive(f, word);
    } else if (word.is("@")) {
      instruction(f, word);
    } else if (word.kind != token_kind::word) {
      refuse(word.line,
        "expected an instruction but found '" + std::string(word.text.substr(0, 60)) + "'");
    } else if (in_.peek().is(":")) {
      in_.next();
      label(f, word);
    } else {
      instruction(f, word);
    }
    if (f.statements.size() > operations_max)
      refuse(f.line, "function '" + std::string(f.name) + "' has too many instructions");
  }
}

void parser::body_directive(function_syntax& f, const token& word) {
  note_directive(word.text);
  const space where = word.is(".shared") ? space::shared
    : word.is(".local")                  ? space::local
    : word.is(".param")                  ? space::parameter
                                         : space::generic;
  if (word.is(".reg")) {
    registers(f);
  } else if (where != space::generic) {
    for (variable& v : declaration(where, ";")) {
      const auto index = static_cast<uint32_t>(f.variables.size());
      scopes_.back().single[v.name] = {operand_kind::variable, index, 0};
      f.variables.push_back(std::move(v));
    }
    expect(";");
    if (f.variables.size() > registers_max)
      refuse(word.line, "too many variables");
  } else if (word.is(".pragma")) {
    skip_to_semicolon(word.line);
  } else if (word.is(".loc")) {
    source_location(word.line);
  } else if (word.is(".file")) {
    source_file(word.line);
  } else {
    not_supported(word.line, "directive '" + std::string(word.text.substr(0, 60)) + "' in a body");
  }
}

/// `.loc 1 23 5` and `.loc 2 7 1, function_name $L, inlined_at 1 23 5`. Of code from another file
/// the place is the one at which the function's own file came to it.
void parser::source_location(int line) {
  const auto on_this_line = [&] {
    return in_.peek().kind != token_kind::end && in_.peek().line == line;
  };
  const auto place = [&] {
    uint32_t file = 0;
    uint32_t at = 0;
    if (on_this_line() && in_.peek().kind == token_kind::number)
      file = static_cast<uint32_t>(read_integer(in_.next().text, UINT32_MAX, line));
    if (on_this_line() && in_.peek().kind == token_kind::number)
      at = static_cast<uint32_t>(read_integer(in_.next().text, INT32_MAX, line));
    if (at == 0)
      return;
    own_file_ = own_file_ == 0 ? file : own_file_;
    if (file == own_file_ || file_ == 0) {
      file_ = file;
      source_ = static_cast<int>(at);
    }
  };
  place();
  while (on_this_line())
    if (in_.next().is("inlined_at"))
      place();
}

/// `.reg .b32 %r<8>, %x;`
void parser::registers(function_syntax& f) {
  const token type = expect_kind(token_kind::word, "a type");
  const int bytes = type_bytes(type.text.substr(1));
  if (type.text.front() != '.' || bytes < 0)
    not_supported(type.line, "registers of type '" + std::string(type.text.substr(0, 40)) + "'");
  const auto kind = bytes == 0 ? operand_kind::predicate : operand_kind::reg;
  do {
    const token name = expect_kind(token_kind::word, "the name of a register");
    const auto first = static_cast<uint32_t>(f.registers.size());
    uint32_t count = 1;
    if (accept("<")) {
      const token n = expect_kind(token_kind::number, "a number of registers");
      count = static_cast<uint32_t>(read_integer(n.text, registers_max, n.line));
      expect(">");
      scopes_.back().family[name.text] = {kind, first, count};
    } else {
      scopes_.back().single[name.text] = {kind, first, 0};
    }
    registers_total_ += count;
    if (first + count > registers_max || registers_total_ > registers_total_max)
      refuse(name.line, "too many registers are declared");
    // A register of 8 bits is the lower half of one of 16.
    f.registers.insert(f.registers.end(), count, {static_cast<uint8_t>(bytes == 1 ? 2 : bytes)});
  } while (accept(","));
  expect(";");
}

void parser::label(function_syntax& f, const token& name) {
  scope_syntax& scope = f.scopes[scopes_.back().scope];
  if (in_.peek().is(".branchtargets")) {
    in_.next();
    std::vector<std::string_view>& targets = scope.branch_targets[name.text];
    do
      targets.push_back(expect_kind(token_kind::word, "a label").text);
    while (accept(","));
    expect(";");
    return;
  }
  if (in_.peek().is(".callprototype")) {
    skip_to_semicolon(name.line); // Only an indirect call uses it, and that one is refused.
    return;
  }
  const auto index = static_cast<uint32_t>(f.labels.size());
  if (!scope.labels.emplace(name.text, index).second)
    refuse(name.line, "label '" + std::string(name.text) + "' is defined twice");
  f.labels.push_back(static_cast<uint32_t>(f.statements.size()));
}

void parser::instruction(function_syntax& f, token first) {
  statement s;
  s.line = first.line;
  s.scope = scopes_.back().scope;
  token opcode = first;
  if (first.is("@")) {
    s.guard_negated = accept("!");
    const token guard = expect_kind(token_kind::word, "a predicate");
    const operand p = named(guard.text);
    if (p.kind != operand_kind::predicate)
      refuse(guard.line, "'" + std::string(guard.text) + "' is not a predicate");
    s.guard = p.index;
    opcode = expect_kind(token_kind::word, "an instruction");
  }
  for (size_t at = 0; at <= opcode.text.size();) {
    const size_t dot = std::min(opcode.text.find('.', at), opcode.text.size());
    s.opcode.push_back(opcode.text.substr(at, dot - at));
    at = dot + 1;
  }
  while (!accept(";")) {
    if (!s.operands.empty())
      expect(",");
    s.operands.push_back(read_operand(0));
    if (s.operands.size() > operands_max)
      refuse(s.line, "too many operands");
  }
  s.text = in_.since(first);
  s.file = file_;
  s.source = source_;
  f.statements.push_back(std::move(s));
}

operand parser::read_operand(uint32_t depth) {
  const token ahead = in_.peek();
  if (depth > operand_depth_max)
    refuse(ahead.line, "an operand is nested too deeply");
  if (ahead.is("{"))
    return group(operand_kind::vector, "}", depth);
  if (ahead.is("("))
    return group(operand_kind::list, ")", depth);
  if (ahead.is("["))
    return address(depth);
  if (accept("!")) {
    operand result = read_operand(depth + 1);
    result.negated = !result.negated;
    return result;
  }
  if (accept("-"))
    return number(true);
  if (ahead.kind == token_kind::number)
    return number(false);
  if (ahead.kind == token_kind::word)
    return word_operand(depth);
  refuse(ahead.line,
    "expected an operand but found "
      + (ahead.kind == token_kind::end ? "the end of the text"
                                       : "'" + std::string(ahead.text.substr(0, 60)) + "'"));
}

operand parser::group(operand_kind kind, std::string_view close, uint32_t depth) {
  operand result;
  result.kind = kind;
  const token open = in_.next();
  while (!accept(close)) {
    if (!result.parts.empty())
      expect(",");
    result.parts.push_back(read_operand(depth + 1));
    if (result.parts.size() > operands_max)
      refuse(open.line, "too many operands");
  }
  return result;
}

operand parser::address(uint32_t depth) {
  operand result;
  result.kind = operand_kind::address;
  const token open = expect("[");
  operand base = read_operand(depth + 1);
  if (in_.peek().is("+") || in_.peek().is("-")) {
    const bool minus = in_.next().is("-") != accept("-");
    const operand offset = number(minus);
    if (offset.kind != operand_kind::integer)
      refuse(open.line, "the offset of an address has to be an integer");
    result.integer = offset.integer;
  }
  operand coordinates;
  const bool has_coordinates = accept(",");
  if (has_coordinates)
    coordinates = read_operand(depth + 1);
  expect("]");
  // `read_operand` took the offset of a symbol already.
  result.integer = static_cast<int64_t>(static_cast<uint64_t>(result.integer)
    + (base.kind == operand_kind::integer ? 0U : static_cast<uint64_t>(base.integer)));
  if (base.kind != operand_kind::integer)
    base.integer = 0;
  result.parts.push_back(std::move(base));
  if (has_coordinates)
    result.parts.push_back(std::move(coordinates));
  return result;
}

operand parser::number(bool negative) {
  const token t = expect_kind(token_kind::number, "a number");
  const literal n = read_literal(t.text, t.line);
  operand result;
  result.kind = n.is_float ? operand_kind::floating : operand_kind::integer;
  result.float_bits = n.float_bits;
  result.number = negative ? -n.value : n.value;
  uint64_t bits = n.bits;
  if (negative)
    bits = n.float_bits != 0 ? bits ^ (1ULL << (n.float_bits - 1)) : 0 - bits;
  result.integer = static_cast<int64_t>(bits);
  return result;
}

operand parser::word_operand(uint32_t depth) {
  const token word = in_.next();
  operand result = named(word.text);
  result.text = word.text;
  if (accept("|")) {
    result.parts.push_back(read_operand(depth + 1));
  } else if ((result.kind == operand_kind::symbol || result.kind == operand_kind::variable)
    && in_.peek().is("+")) {
    in_.next();
    const operand offset = number(accept("-"));
    if (offset.kind != operand_kind::integer)
      refuse(word.line, "the offset of an address has to be an integer");
    result.integer = offset.integer;
  }
  return result;
}

operand parser::named(std::string_view name) const {
  operand result;
  result.text = name;
  if (name == "_")
    return result;
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  uint64_t number = 0;
  const bool numbered = digits < name.size() && name.size() - digits < 8
    && (name[digits] != '0' || name.size() - digits == 1);
  for (size_t i = digits; numbered && i < name.size(); ++i)
    number = number * 10 + static_cast<uint64_t>(name[i] - '0');
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto one = scopes_[i].single.find(name);
    if (one != scopes_[i].single.end()) {
      result.kind = one->second.kind;
      result.index = one->second.index;
      return result;
    }
    if (!numbered)
      continue;
    const auto family = scopes_[i].family.find(name.substr(0, digits));
    if (family != scopes_[i].family.end() && number < family->second.count) {
      result.kind = family->second.kind;
      result.index = family->second.index + static_cast<uint32_t>(number);
      return result;
    }
  }
  if (name == "WARP_SZ") {
    result.kind = operand_kind::integer;
    result.integer = 32;
    result.number = 32;
    return result;
  }
  result.kind = name.front() == '%' ? operand_kind::special : operand_kind::symbol;
  return result;
}

} // namespace gristmill::ptx
