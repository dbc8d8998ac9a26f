#include "kernels/plan_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text.front())
    && std::all_of(text.begin(), text.end(),
      [](char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

/// What the generated sources use themselves, beside the keywords of C++.
const std::set<std::string, std::less<>>& reserved_words() {
  static const std::set<std::string, std::less<>> words = {"alignas", "alignof", "and", "and_eq",
    "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class", "compl",
    "concept", "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq", "main", "std", "half", "uint", "linux", "unix", "assert", "printf",
    // Types, functions and variables of the generated sources.
    "threads", "unroll", "total", "first", "last", "count", "vector", "element", "u", "i", "row",
    "rows", "cols", "lane", "chunk", "chunks", "column", "partial", "at", "row_memory", "row_bytes",
    "index_t", "word_of", "packed", "run", "reduce_row", "reduce_places", "add_op", "max_op",
    "min_op", "row_threads", "block_rows", "loop_unroll", "fused_rows", "fused_elementwise",
    "plain_elementwise", "plain_rows", "sigmoid", "silu", "gelu", "gelu_tanh", "hardswish",
    "round_bf16", "round_fp16", "erff", "expf", "tanhf", "logf", "log2f", "exp2f", "log1pf",
    "expm1f", "sqrtf", "rsqrtf", "sinf", "cosf", "powf", "fabsf", "fmaxf", "fminf", "uint2",
    "uint4", "int32_t", "int64_t", "uint32_t", "uint64_t"};
  return words;
}

/// Names that the sources number: v12, acc3, index0.
bool is_numbered(const std::string& text) {
  static const std::set<std::string, std::less<>> stems = {
    "v", "r", "acc", "top", "below", "before", "value", "index", "rest", "size", "inv", "kept"};
  const size_t digits = text.find_last_not_of("0123456789") + 1;
  return digits < text.size() && stems.contains(text.substr(0, digits));
}

} // namespace

std::string qualified_name(std::string_view kind, std::string_view name) {
  if (is_identifier(name))
    return fmt::format("{}.{}", kind, name);
  std::string escaped;
  for (char c : name) {
    if (c == '"' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return fmt::format("{}(\"{}\")", kind, escaped);
}

std::string dim_text(std::string_view kind, std::string_view tensor, size_t index) {
  return fmt::format("dim({}, {})", qualified_name(kind, tensor), index);
}

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const auto& factor : factors) {
    if (factor == "1")
      continue;
    if (!text.empty())
      text += " * ";
    text += factor;
  }
  return text.empty() ? "1" : text;
}

std::string free_name(const definition& def, std::string wanted) {
  while (def.find_axis(wanted) != nullptr || def.find_input(wanted) != nullptr
    || def.find_output(wanted) != nullptr)
    wanted += '_';
  return wanted;
}

std::string macro_lines(const definition& def, const std::vector<std::string>& macros) {
  std::string text;
  for (const auto& macro : macros) {
    if (const std::string name = free_name(def, macro); name != macro)
      text += fmt::format("#define {} {}\n", macro, name);
  }
  return text;
}

std::vector<std::string> cpp_identifiers(const definition& def) {
  std::set<std::string> taken;
  std::vector<std::string> identifiers;
  const auto add = [&](const std::string& name) {
    std::string text;
    for (char c : name)
      text += is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 ? c : '_';
    // Capitals could be macros of the plan or of a header; leading underscores belong to the
    // compiler.
    const bool is_plain = is_letter(text.front()) && text.front() != '_'
      && std::any_of(text.begin(), text.end(), [](char c) { return std::islower(c) != 0; });
    if (!is_plain)
      text = "t_" + text;
    if (is_numbered(text))
      text += '_';
    while (reserved_words().contains(text) || text.ends_with("__") || !taken.insert(text).second)
      text += text.ends_with('_') ? "t" : "_";
    identifiers.push_back(text);
  };
  for (const auto& spec : def.inputs)
    add(spec.name);
  for (const auto& spec : def.outputs)
    add(spec.name);
  return identifiers;
}

} // namespace gristmill
