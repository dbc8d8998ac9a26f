#include "protocol/python_scan.hpp"

#include "protocol/python_syntax.hpp"
#include "protocol/python_token.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Behind the `[T]` of `def name[T](…)`, which Python has since 3.12.
size_t behind_type_parameters(const std::vector<python_token>& tokens, size_t at) {
  if (tokens[at].text != "[")
    return at;
  size_t depth = 0;
  for (; at < tokens.size(); ++at) {
    if (tokens[at].text == "[")
      ++depth;
    else if (tokens[at].text == "]" && --depth == 0)
      return at + 1;
  }
  return at;
}

/// Reads the parameters behind `def name`; `at` stands on the opening bracket.
std::vector<std::string> read_parameters(const std::vector<python_token>& tokens, size_t at) {
  std::vector<std::string> names;
  size_t depth = 0;
  size_t lambdas = 0;
  bool expects_name = true;
  bool counting = true;
  for (; at < tokens.size(); ++at) {
    const auto& each = tokens[at];
    if (each.what == python_token::kind::symbol) {
      const char c = each.text[0];
      if (c == '(' || c == '[' || c == '{') {
        ++depth;
        continue;
      }
      if (c == ')' || c == ']' || c == '}') {
        if (--depth == 0)
          break;
        continue;
      }
    }
    if (depth != 1)
      continue;
    if (each.text == "lambda") {
      ++lambdas; // Its commas are not ours until its colon.
    } else if (each.text == ":" && lambdas > 0) {
      --lambdas;
    } else if (each.text == "," && lambdas == 0) {
      expects_name = true;
    } else if (expects_name) {
      if (each.text == "*" || each.text == "**")
        counting = false; // What follows is for keywords only.
      else if (each.what == python_token::kind::name && counting)
        names.emplace_back(each.text);
      expects_name = false;
    }
  }
  return names;
}

} // namespace

const python_function* python_outline::find(std::string_view name) const {
  for (const auto& each : functions)
    if (each.name == name)
      return &each;
  return nullptr;
}

result<python_outline> scan_python(std::string_view source) {
  auto tokens = tokenize_python(source);
  if (!tokens)
    return pass(tokens);
  if (auto fine = check_python_syntax(*tokens); !fine)
    return pass(fine);
  python_outline out;
  for (size_t i = 0; i + 2 < tokens->size(); ++i) {
    const auto& first = (*tokens)[i];
    if (!first.starts_line || first.column > 0 || !first.is("def"))
      continue;
    const auto& name = (*tokens)[i + 1];
    const size_t open = behind_type_parameters(*tokens, i + 2);
    if (name.what != python_token::kind::name || is_python_keyword(name.text)
      || open >= tokens->size() || !(*tokens)[open].is("("))
      return fail(errc::invalid_input,
        fmt::format("line {} is not Python: `def` without a name and its parameters", first.line));
    out.functions.push_back({std::string{name.text}, read_parameters(*tokens, open)});
  }
  return out;
}

bool is_python_name(std::string_view text) {
  return !text.empty() && starts_python_name(text[0])
    && std::all_of(text.begin(), text.end(), continues_python_name) && !is_python_keyword(text);
}

} // namespace gristmill
