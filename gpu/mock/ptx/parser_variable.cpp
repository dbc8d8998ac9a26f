#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/numbers.hpp"
#include "gpu/mock/ptx/parser.hpp"

#include <algorithm>
#include <bit>

namespace gristmill::ptx {

/// `.align 4 .b8 name[16] = {...}`, more names after commas, up to one of the characters `ends`
/// (which stays unread). The space word was read already.
std::vector<variable> parser::declaration(space where, std::string_view ends) {
  variable form;
  form.where = where;
  form.line = in_.peek().line;
  bool has_type = false;
  while (in_.peek().kind == token_kind::word && in_.peek().text.front() == '.') {
    const token word = in_.next();
    const int bytes = type_bytes(word.text.substr(1));
    if (word.is(".align")) {
      const token n = expect_kind(token_kind::number, "an alignment");
      form.align = static_cast<uint32_t>(read_integer(n.text, 4096, n.line));
      if (!std::has_single_bit(form.align))
        refuse(n.line, "an alignment has to be a power of two");
    } else if (bytes > 0 && !has_type) {
      form.width = static_cast<uint32_t>(bytes);
      form.type = word.text.substr(1);
      has_type = true;
    } else if (!word.is(".ptr") && !word.is(".global") && !word.is(".shared") && !word.is(".const")
      && !word.is(".local")) {
      not_supported(word.line,
        "unexpected '" + std::string(word.text.substr(0, 60))
          + "' in the declaration of a variable");
    }
  }
  if (!has_type)
    refuse(form.line, "the declaration of a variable has no type");
  std::vector<variable> result;
  const bool is_parameter_list = ends.find(')') != std::string_view::npos;
  do {
    variable v = form;
    const token name = expect_kind(token_kind::word, "the name of a variable");
    v.name = name.text;
    v.line = name.line;
    // `.ptr .align 16` speaks of what a pointer points to.
    v.align = where == space::parameter && v.width > 1 ? v.width : std::max(v.align, v.width);
    array_size(v, ends);
    result.push_back(std::move(v));
  } while (!is_parameter_list && accept(","));
  return result;
}

void parser::array_size(variable& v, std::string_view ends) {
  uint64_t elements = 1;
  while (accept("[")) {
    if (accept("]")) {
      v.dynamic = true;
      continue;
    }
    const token n = expect_kind(token_kind::number, "the size of an array");
    elements *= read_integer(n.text, global_bytes_max, n.line);
    if (elements > global_bytes_max)
      refuse(n.line, "array '" + std::string(v.name) + "' is too big");
    expect("]");
  }
  const uint64_t max = v.where == space::shared ? shared_bytes_max
    : v.where == space::local                   ? local_bytes_max
    : v.where == space::parameter               ? parameter_bytes_max
                                                : global_bytes_max;
  v.bytes = v.dynamic ? 0 : elements * v.width;
  if (v.bytes > max)
    refuse(v.line,
      "variable '" + std::string(v.name) + "' has " + std::to_string(v.bytes) + " bytes; at most "
        + std::to_string(max) + " are possible in its space");
  if (in_.peek().is("=") && ends == ";")
    initialiser(v);
  if (v.dynamic && v.where != space::shared) {
    if (v.values.empty())
      not_supported(v.line, "array '" + std::string(v.name) + "' has no size");
    v.dynamic = false;
    v.bytes = v.values.size() * v.width;
  }
}

void parser::initialiser(variable& v) {
  expect("=");
  if (in_.peek().is("{"))
    initial_values(v, 0);
  else
    initial_value(v);
  if (!v.dynamic && v.values.size() * v.width > v.bytes)
    refuse(v.line, "variable '" + std::string(v.name) + "' has more initial values than elements");
}

void parser::initial_values(variable& v, uint32_t depth) {
  const token open = expect("{");
  if (depth > operand_depth_max)
    refuse(open.line, "the initial values are nested too deeply");
  bool first = true;
  while (!accept("}")) {
    if (!first)
      expect(",");
    first = false;
    if (in_.peek().is("{"))
      initial_values(v, depth + 1);
    else
      initial_value(v);
  }
}

void parser::initial_value(variable& v) {
  if (in_.peek().kind == token_kind::word) {
    token name = in_.next();
    const bool generic = name.is("generic");
    if (generic) {
      expect("(");
      name = expect_kind(token_kind::word, "a symbol");
    }
    variable::reference address{v.values.size(), name.text, 0};
    if (accept("+")) {
      const token n = expect_kind(token_kind::number, "an offset");
      address.offset = static_cast<int64_t>(read_integer(n.text, global_bytes_max, n.line));
    }
    if (generic)
      expect(")");
    if (v.width != 8)
      not_supported(name.line,
        "the address of '" + std::string(name.text) + "' does not fit into an element of "
          + std::to_string(v.width) + " bytes");
    v.references.push_back(address);
    v.values.push_back(0);
    return;
  }
  const bool negative = accept("-");
  const token t = expect_kind(token_kind::number, "an initial value");
  const literal number = read_literal(t.text, t.line);
  uint64_t bits = number.bits;
  if (number.is_float && number.float_bits == 0) {
    const double value = negative ? -number.value : number.value;
    bits = v.width == 8 ? std::bit_cast<uint64_t>(value)
                        : std::bit_cast<uint32_t>(static_cast<float>(value));
    if (v.type != "f32" && v.type != "f64")
      refuse(t.line, "a number with a decimal point needs the type f32 or f64");
  } else if (number.is_float && number.float_bits != 8 * v.width) {
    refuse(t.line, "the initial value and its variable differ in width");
  } else if (negative) {
    bits = number.is_float ? bits ^ (1ULL << (8 * v.width - 1)) : 0 - bits;
  }
  v.values.push_back(bits);
}

} // namespace gristmill::ptx
