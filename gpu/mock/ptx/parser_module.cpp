#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/numbers.hpp"
#include "gpu/mock/ptx/parser.hpp"

#include <algorithm>

namespace gristmill::ptx {

int type_bytes(std::string_view type) {
  static const std::unordered_map<std::string_view, int> bytes{{"pred", 0}, {"b8", 1}, {"u8", 1},
    {"s8", 1}, {"b16", 2}, {"u16", 2}, {"s16", 2}, {"f16", 2}, {"bf16", 2}, {"b32", 4}, {"u32", 4},
    {"s32", 4}, {"f32", 4}, {"f16x2", 4}, {"bf16x2", 4}, {"tf32", 4}, {"u16x2", 4}, {"s16x2", 4},
    {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}, {"f32x2", 8}, {"e4m3x2", 2}, {"e5m2x2", 2},
    {"b128", 16}};
  const auto found = bytes.find(type);
  return found == bytes.end() ? -1 : found->second;
}

module_syntax read_module(std::string_view text) {
  return parser(text).read();
}

module_syntax parser::read() {
  while (in_.peek().kind != token_kind::end)
    module_item();
  std::sort(out_.directives.begin(), out_.directives.end());
  out_.directives.erase(
    std::unique(out_.directives.begin(), out_.directives.end()), out_.directives.end());
  return std::move(out_);
}

void parser::module_item() {
  token word = in_.next();
  bool is_extern = false;
  while (word.is(".visible") || word.is(".extern") || word.is(".weak") || word.is(".common")) {
    note_directive(word.text);
    is_extern = is_extern || word.is(".extern");
    word = in_.next();
  }
  if (word.kind == token_kind::word)
    note_directive(word.text);
  if (word.is(".version") || word.is(".loc"))
    in_.skip_line(word.line);
  else if (word.is(".file"))
    source_file(word.line);
  else if (word.is(".target"))
    target();
  else if (word.is(".address_size")) {
    if (read_integer(expect_kind(token_kind::number, "a number").text, 64, word.line) != 64)
      not_supported(word.line, "only .address_size 64 is supported");
  } else if (word.is(".section"))
    skip_section(word.line);
  else if (word.is(".pragma"))
    skip_to_semicolon(word.line);
  else if (word.is(".global"))
    module_variable(space::global, is_extern);
  else if (word.is(".const"))
    module_variable(space::constant, is_extern);
  else if (word.is(".shared"))
    module_variable(space::shared, is_extern);
  else if (word.is(".func"))
    function(false, is_extern);
  else if (word.is(".entry"))
    function(true, is_extern);
  else
    not_supported(word.line,
      "unexpected '" + std::string(word.text.substr(0, 60)) + "' at the top level of the module");
}

void parser::target() {
  const token name = expect_kind(token_kind::word, "a target");
  out_.target = name.text;
  in_.skip_line(name.line);
}

/// `.file 1 "folder/kernel.cu", 1700000000, 512`
void parser::source_file(int line) {
  constexpr size_t files_max = 1024;
  if (in_.peek().kind == token_kind::number && in_.peek().line == line) {
    const auto number = static_cast<uint32_t>(read_integer(in_.next().text, UINT32_MAX, line));
    if (in_.peek().kind == token_kind::string && out_.files.size() < files_max) {
      std::string_view name = in_.next().text;
      name = name.substr(1, name.size() - 2);
      out_.files[number] = std::string(name.substr(name.find_last_of("/\\") + 1).substr(0, 200));
    }
  }
  in_.skip_line(line);
}

void parser::skip_section(int line) {
  while (in_.peek().kind != token_kind::end && !in_.peek().is("{"))
    in_.next();
  expect("{");
  for (uint64_t depth = 1; depth > 0;) {
    const token t = in_.next();
    if (t.kind == token_kind::end)
      refuse(line, "the section is not closed");
    depth += t.is("{") ? 1U : 0U;
    depth -= t.is("}") ? 1U : 0U;
  }
}

void parser::module_variable(space where, bool is_extern) {
  for (variable& v : declaration(where, ";")) {
    v.is_extern = is_extern && !v.dynamic;
    if (v.is_extern && where != space::shared)
      not_supported(v.line,
        "variable '" + std::string(v.name)
          + "' is defined in another module; nothing is linked here");
    const auto same = [&](const variable& other) { return other.name == v.name; };
    if (std::any_of(out_.variables.begin(), out_.variables.end(), same))
      refuse(v.line, "variable '" + std::string(v.name) + "' is declared twice");
    out_.variables.push_back(std::move(v));
  }
  expect(";");
}

void parser::function(bool is_entry, bool is_extern) {
  function_syntax f;
  f.is_entry = is_entry;
  f.line = in_.peek().line;
  open_scope(f, 0);
  if (!is_entry && in_.peek().is("("))
    f.results = parameter_list(f);
  const token name = expect_kind(token_kind::word, "the name of a function");
  f.name = name.text;
  f.line = name.line;
  if (in_.peek().is("("))
    f.parameters = parameter_list(f);
  function_directives(f);
  if (accept(";")) {
    scopes_.clear();
    keep(std::move(f));
    return;
  }
  if (is_extern)
    refuse(f.line, "function '" + std::string(f.name) + "' is .extern and has a body");
  f.has_body = true;
  file_ = own_file_ = 0;
  source_ = 0;
  body(f);
  keep(std::move(f));
}

std::vector<uint32_t> parser::parameter_list(function_syntax& f) {
  std::vector<uint32_t> result;
  expect("(");
  while (!accept(")")) {
    if (!result.empty())
      expect(",");
    const token word = in_.next();
    if (!word.is(".param"))
      not_supported(word.line,
        "a parameter has to be in .param space, not '" + std::string(word.text.substr(0, 40))
          + "'");
    for (variable& v : declaration(space::parameter, ",)")) {
      result.push_back(static_cast<uint32_t>(f.variables.size()));
      scopes_.back().single[v.name] = {operand_kind::variable, result.back(), 0};
      f.variables.push_back(std::move(v));
    }
    if (result.size() > parameters_max)
      refuse(word.line, "more than " + std::to_string(parameters_max) + " parameters");
  }
  return result;
}

void parser::function_directives(function_syntax& f) {
  for (;;) {
    const token& ahead = in_.peek();
    if (ahead.is("{") || ahead.is(";"))
      return;
    const token word = in_.next();
    note_directive(word.text);
    std::vector<uint64_t> numbers;
    while (in_.peek().kind == token_kind::number || in_.peek().is(",")) {
      const token t = in_.next();
      if (t.kind == token_kind::number)
        numbers.push_back(read_integer(t.text, UINT32_MAX, t.line));
    }
    if (word.is(".maxntid") || word.is(".reqntid")) {
      if (numbers.empty() || numbers.size() > 3
        || std::find(numbers.begin(), numbers.end(), 0U) != numbers.end())
        refuse(word.line, "'" + std::string(word.text) + "' needs one to three numbers above 0");
      uint64_t product = 1;
      for (const uint64_t n : numbers)
        product = std::min<uint64_t>(product * std::min<uint64_t>(n, 1024), 1U << 20);
      f.max_threads = static_cast<uint32_t>(product);
      for (size_t i = 0; i < 3 && word.is(".reqntid"); ++i)
        f.required_block[i] = static_cast<uint32_t>(i < numbers.size() ? numbers[i] : 1);
    } else if (word.is(".maxnreg") || word.is(".minnctapersm") || word.is(".maxnctapersm")) {
      if (numbers.size() != 1 || numbers[0] == 0)
        refuse(word.line, "'" + std::string(word.text) + "' needs one number above 0");
      (word.is(".maxnreg") ? f.registers_max : f.blocks_per_sm_min) =
        static_cast<uint32_t>(numbers[0]);
    } else if (word.is(".reqnctapercluster")) {
      uint64_t blocks = 1;
      for (size_t i = 0; i < 3; ++i) {
        const uint64_t n = i < numbers.size() ? numbers[i] : 1;
        blocks *= std::min<uint64_t>(n, cluster_blocks_max + 1);
        f.cluster[i] = static_cast<uint32_t>(n);
      }
      if (blocks == 0 || blocks > cluster_blocks_max || numbers.size() > 3)
        refuse(word.line,
          "a cluster has 1 to " + std::to_string(cluster_blocks_max) + " blocks in 3 dimensions");
    } else if (word.is(".pragma")) {
      skip_to_semicolon(word.line);
    } else if (!word.is(".noreturn") && !word.is(".explicitcluster")
      && !word.is(".maxclusterrank")) {
      not_supported(word.line,
        "unexpected '" + std::string(word.text.substr(0, 60)) + "' after the head of function '"
          + std::string(f.name) + "'");
    }
  }
}

void parser::keep(function_syntax f) {
  for (function_syntax& other : out_.functions)
    if (other.name == f.name) {
      if (other.has_body && f.has_body)
        refuse(f.line, "function '" + std::string(f.name) + "' is defined twice");
      if (f.has_body)
        other = std::move(f);
      return;
    }
  out_.functions.push_back(std::move(f));
}

token parser::expect(std::string_view what) {
  const token t = in_.next();
  if (!t.is(what))
    refuse(t.line,
      "expected '" + std::string(what) + "' but found "
        + (t.kind == token_kind::end ? "the end of the text"
                                     : "'" + std::string(t.text.substr(0, 60)) + "'"));
  return t;
}

token parser::expect_kind(token_kind kind, std::string_view what) {
  const token t = in_.next();
  if (t.kind != kind)
    refuse(t.line,
      "expected " + std::string(what) + " but found "
        + (t.kind == token_kind::end ? "the end of the text"
                                     : "'" + std::string(t.text.substr(0, 60)) + "'"));
  return t;
}

bool parser::accept(std::string_view what) {
  if (!in_.peek().is(what))
    return false;
  in_.next();
  return true;
}

void parser::skip_to_semicolon(int line) {
  for (;;) {
    const token t = in_.next();
    if (t.kind == token_kind::end)
      refuse(line, "a semicolon is missing");
    if (t.is(";"))
      return;
  }
}

void parser::note_directive(std::string_view name) {
  if (out_.directives.size() < 64
    && std::find(out_.directives.begin(), out_.directives.end(), name) == out_.directives.end())
    out_.directives.push_back(name);
}

} // namespace gristmill::ptx
