#include "protocol/exporter/unit_text.hpp"

#include "protocol/resolve_argument.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The source with comments and the inside of literals blanked, byte for byte as long.
std::string without_comments(std::string_view source) {
  std::string out{source};
  const auto at = [&](size_t i) { return i < source.size() ? source[i] : '\0'; };
  size_t i = 0;
  const auto blank = [&](size_t end) {
    for (end = std::min(end, source.size()); i < end; ++i)
      if (source[i] != '\n')
        out[i] = ' ';
  };
  while (i < source.size()) {
    if (at(i) == '/' && at(i + 1) == '/') {
      blank(source.find('\n', i));
    } else if (at(i) == '/' && at(i + 1) == '*') {
      const size_t end = source.find("*/", i + 2);
      blank(end == std::string_view::npos ? end : end + 2);
    } else if (at(i) == '"' || (at(i) == '\'' && (i == 0 || !is_word(source[i - 1])))) {
      const char quote = at(i++);
      size_t end = i;
      while (end < source.size() && source[end] != quote && source[end] != '\n')
        end += source[end] == '\\' ? 2 : 1;
      blank(end);
      ++i;
    } else {
      ++i;
    }
  }
  return out;
}

/// The header's name with its quotes, when the line is an include; `code` is the line without
/// comments, but for the inside of `"…"`, which is blank.
std::string include_of(std::string_view line, std::string_view code) {
  size_t i = code.find_first_not_of(" \t\r");
  if (i == std::string_view::npos || code[i] != '#')
    return {};
  i = code.find_first_not_of(" \t", i + 1);
  if (i == std::string_view::npos || code.substr(i, 7) != "include")
    return {};
  const size_t begin = code.find_first_of("<\"", i + 7);
  if (begin == std::string_view::npos)
    return {};
  const size_t end = code.find(code[begin] == '<' ? '>' : '"', begin + 1);
  return end == std::string_view::npos ? std::string{}
                                       : std::string{line.substr(begin, end + 1 - begin)};
}

/// The last name before the template arguments.
std::string base_name(std::string_view entry) {
  const size_t end = std::min(entry.find('<'), entry.size());
  size_t last = end;
  while (last > 0 && !is_word(entry[last - 1]))
    --last;
  size_t first = last;
  while (first > 0 && is_word(entry[first - 1]))
    --first;
  return std::string{entry.substr(first, last - first)};
}

} // namespace

std::string unit_namespace(size_t index) {
  return fmt::format("gm_unit_{}", index);
}

split_source split_includes(std::string_view source) {
  split_source out;
  const std::string code = without_comments(source);
  for (size_t begin = 0; begin <= source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const auto line = source.substr(begin, end - begin);
    const auto found = include_of(line, std::string_view{code}.substr(begin, end - begin));
    if (found.empty())
      out.rest += line;
    else if (std::find(out.includes.begin(), out.includes.end(), found) == out.includes.end())
      out.includes.push_back(found);
    if (end < source.size())
      out.rest += '\n';
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> kernel_names(std::string_view source) {
  const std::string code = without_comments(source);
  const std::string_view marker = "__global__";
  std::vector<std::string> out;
  for (size_t at = code.find(marker); at != std::string::npos; at = code.find(marker, at)) {
    at += marker.size();
    // The name is the word before the first parenthesis that does not belong to an attribute.
    std::string word;
    for (size_t i = at; i < code.size() && code[i] != ';' && code[i] != '{'; ++i) {
      if (is_word(code[i])) {
        word = i == at || !is_word(code[i - 1]) ? std::string(1, code[i]) : word + code[i];
      } else if (code[i] == '(') {
        if (!word.starts_with("__")) {
          if (!word.empty() && std::find(out.begin(), out.end(), word) == out.end())
            out.push_back(word);
          break;
        }
        for (size_t depth = 0; i < code.size(); ++i) {
          depth += code[i] == '(' ? 1 : 0;
          if (code[i] == ')' && --depth == 0)
            break;
        }
        word.clear();
      } else if (code[i] == '<') { // Of an explicit instantiation: the name stands before it.
        for (size_t depth = 0; i < code.size(); ++i) {
          depth += code[i] == '<' ? 1 : 0;
          if (code[i] == '>' && --depth == 0)
            break;
        }
      }
    }
  }
  return out;
}

result<std::string> unit_text(std::string_view source, const export_unit& unit, size_t index,
  const std::vector<std::string>& entries) {
  const auto split = split_includes(source);
  // Torch's flags take the operators of the 16-bit types away; kernels are written with them.
  std::string text =
    "// Made by gristmill export. The candidate's code stands unchanged in a namespace of its "
    "own.\n"
    "#undef __CUDA_NO_HALF_OPERATORS__\n#undef __CUDA_NO_HALF_CONVERSIONS__\n"
    "#undef __CUDA_NO_HALF2_OPERATORS__\n#undef __CUDA_NO_BFLOAT16_CONVERSIONS__\n"
    "#undef __CUDA_NO_BFLOAT16_OPERATORS__\n#undef __CUDA_NO_BFLOAT162_OPERATORS__\n"
    "#include <cuda.h>\n";
  for (const char* header :
    {"cuda_runtime.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "math_constants.h", "cfloat",
      "climits", "cmath", "cstddef", "cstdint", "limits", "type_traits", "utility"})
    text += fmt::format("#include <{}>\n", header);
  for (const auto& each : split.includes)
    text += fmt::format("#include {}\n", each);
  std::vector<std::string> renamed = kernel_names(source);
  for (const auto& entry : entries)
    if (auto base = base_name(entry);
        std::find(renamed.begin(), renamed.end(), base) == renamed.end())
      renamed.push_back(base);
  text += "\n";
  for (const auto& [define_name, value] : unit.defines) {
    auto literal = define_literal(value);
    if (!literal)
      return fail(literal.error().code,
        fmt::format("plan: defines.{}: {}", define_name, literal.error().what));
    text += fmt::format("#define {} {}\n", define_name, *literal);
  }
  for (const auto& each : renamed) {
    const bool is_define = std::any_of(unit.defines.begin(), unit.defines.end(),
      [&](const auto& define) { return define.first == each; });
    if (!is_define && !each.empty())
      text += fmt::format("#define {0} {1}_{0}\n", each, unit_namespace(index));
  }
  text += fmt::format("\nnamespace {} {{\n\n{}\n", unit_namespace(index), split.rest);
  text += "const void* gm_entry(int gm_index) {\n  switch (gm_index) {\n";
  for (size_t i = 0; i < entries.size(); ++i)
    if (std::find(unit.entries.begin(), unit.entries.end(), entries[i]) != unit.entries.end())
      text += fmt::format("  case {}: {{\n    auto* gm_kernel = &{};\n    return "
                          "reinterpret_cast<const void*>(gm_kernel);\n  }}\n",
        i, entries[i]);
  text += fmt::format(
    "  default:\n    return nullptr;\n  }}\n}}\n\n}} // namespace {}\n", unit_namespace(index));
  return text;
}

} // namespace gristmill
