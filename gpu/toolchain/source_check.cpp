#include "gpu/toolchain/source_check.hpp"

#include "gpu/toolchain/device_header.hpp"
#include "protocol/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace gristmill {

namespace {

constexpr size_t name_max = 64, value_max = 128, expression_max = 512, defines_max = 256;

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// The source as the preprocessor's directives see it: lines that end in a backslash are joined
/// with the next one, comments are one space. `line` is where a logical line starts.
struct logical_line {
  int line;
  std::string text;
};

std::vector<logical_line> logical_lines(std::string_view source) {
  std::vector<logical_line> lines;
  logical_line current{1, {}};
  int line = 1;
  enum class state { code, block_comment, line_comment, string, character } in = state::code;
  const auto at = [&](size_t i) { return i < source.size() ? source[i] : '\0'; };
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '\\') {
      // clang joins lines across blanks behind the backslash, too.
      size_t end = i + 1;
      while (is_space(at(end)))
        ++end;
      if (at(end) == '\n') {
        ++line;
        i = end;
        continue;
      }
    }
    if (c == '\n') {
      ++line;
      if (in != state::block_comment) {
        lines.push_back(std::move(current));
        current = {line, {}};
        in = state::code;
      }
      continue;
    }
    if (in == state::block_comment) {
      if (c == '*' && at(i + 1) == '/') {
        ++i;
        in = state::code;
      }
    } else if (in == state::line_comment) {
      continue;
    } else if (in == state::code && c == '/' && (at(i + 1) == '*' || at(i + 1) == '/')) {
      in = at(i + 1) == '*' ? state::block_comment : state::line_comment;
      current.text += ' ';
      ++i;
    } else {
      if (c == '"' && in != state::character)
        in = in == state::string ? state::code : state::string;
      // A quote between digits is a separator, as in 1'000.
      else if (c == '\'' && in != state::string
        && (in == state::character || current.text.empty()
          || std::isalnum(static_cast<unsigned char>(current.text.back())) == 0))
        in = in == state::character ? state::code : state::character;
      current.text += c;
      if (c == '\\' && (in == state::string || in == state::character) && at(i + 1) != '\0'
        && at(i + 1) != '\n')
        current.text += source[++i];
    }
  }
  lines.push_back(std::move(current));
  return lines;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_space(text.back()))
    text.remove_suffix(1);
  return text;
}

result<void> check_directive(int line, std::string_view text) {
  const auto refuse = [&](std::string why) {
    return fail(errc::refused, fmt::format("kernel.cu:{}: {}", line, why));
  };
  text = trimmed(text);
  size_t end = 0;
  while (end < text.size() && is_letter(text[end]))
    ++end;
  const std::string_view word = text.substr(0, end);
  const std::string_view rest = trimmed(text.substr(end));
  if (word == "include_next" || word == "import" || word == "embed" || word == "line"
    || (word.empty() && !rest.empty() && is_digit(rest.front())))
    return refuse(fmt::format("#{} is not allowed", word.empty() ? "line" : word));
  if (word != "include")
    return {};
  const bool quoted = rest.size() > 2
    && ((rest.front() == '<' && rest.back() == '>') || (rest.front() == '"' && rest.back() == '"'));
  if (!quoted)
    return refuse("#include takes the name of a header");
  const std::string name(rest.substr(1, rest.size() - 2));
  if (!is_device_header(name))
    return refuse(fmt::format("the header '{}' is not available; there are {}",
      name.substr(0, name_max), device_header_names()));
  return {};
}

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= name_max && is_letter(text.front())
    && std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

/// A number, or a type: words with `::` between, separated by blanks.
bool is_literal(std::string_view text) {
  if (text.empty() || text.size() > value_max)
    return false;
  const bool number =
    is_digit(text.front()) || (text.size() > 1 && text.front() == '-' && is_digit(text[1]));
  return std::all_of(text.begin(), text.end(), [&](char c) {
    if (is_letter(c) || is_digit(c))
      return true;
    return number ? c == '.' || c == '-' || c == '+' : c == ' ' || c == ':';
  }) && (number || is_letter(text.front()));
}

} // namespace

result<void> check_source(std::string_view source) {
  if (source.find('\0') != std::string_view::npos)
    return fail(errc::refused, "kernel.cu: the source holds a zero byte");
  for (const logical_line& at : logical_lines(source)) {
    const std::string_view text = trimmed(at.text);
    // `%:` is another way to write #, and ??= was one.
    const size_t marker = text.starts_with("#") ? 1
      : text.starts_with("%:")                  ? 2
      : text.starts_with("?\?=")                ? 3
                                                : 0;
    if (marker > 0)
      if (auto checked = check_directive(at.line, text.substr(marker)); !checked)
        return checked;
    for (const std::string_view word : {"__has_include", "__has_embed"})
      if (text.find(word) != std::string_view::npos)
        return fail(errc::refused, fmt::format("kernel.cu:{}: {} is not allowed", at.line, word));
  }
  return {};
}

result<void> check_unit(const compile_unit& unit) {
  if (unit.defines.size() > defines_max)
    return fail(errc::invalid_input, fmt::format("{} defines are too many", unit.defines.size()));
  for (const auto& [name, value] : unit.defines) {
    if (!is_identifier(name) || name.starts_with("__"))
      return fail(errc::invalid_input,
        fmt::format("'{}' cannot be the name of a define", name.substr(0, name_max)));
    if (!is_literal(value))
      return fail(errc::invalid_input,
        fmt::format(
          "define {}: '{}' is neither a number nor a type", name, value.substr(0, value_max)));
  }
  for (const entry_use& entry : unit.entries) {
    const std::string_view text = entry.expression;
    const bool fine = !text.empty() && text.size() <= expression_max
      && (is_letter(text.front()) || text.front() == ':')
      && std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter(c) || is_digit(c)
             || std::string_view("<>,:()+-*%!&|=. ").find(c) != std::string_view::npos;
         });
    if (!fine)
      return fail(errc::invalid_input,
        fmt::format("'{}' is not the name of an entry or of a template with arguments",
          text.substr(0, expression_max)));
    if (entry.argument_names.size() != entry.parameter_abi.size()
      || entry.parameter_const.size() != entry.parameter_abi.size())
      return fail(errc::invalid_input,
        fmt::format("entry '{}': the descriptions of its arguments differ in length", text));
  }
  return {};
}

result<std::vector<std::string>> option_flags(const plan_options& options) {
  static const std::vector<std::string> standards{"c++17", "c++20"};
  if (std::find(standards.begin(), standards.end(), options.standard) == standards.end())
    return fail(errc::invalid_input,
      fmt::format("options.std: '{}' is not a standard{}", options.standard.substr(0, name_max),
        suggestion(options.standard, standards)));
  if (options.max_registers > 255)
    return fail(errc::invalid_input,
      fmt::format("options.maxrregcount: {} is more than 255", options.max_registers));
  if (!options.headers.empty())
    return fail(errc::unsupported,
      fmt::format(
        "options.headers: '{}' comes with the CUDA toolkit; the clang toolchain has only {}",
        options.headers.front().substr(0, name_max), device_header_names()));
  std::vector<std::string> flags{"-std=" + options.standard};
  // What nvcc calls --use_fast_math: fast functions, subnormals as zero. Infinities and NaNs stay.
  if (options.fast_math) {
    flags.emplace_back("-DGM_FAST_MATH=1");
    flags.emplace_back("-fgpu-flush-denormals-to-zero");
  }
  return flags;
}

result<std::string> clang_architecture(std::string_view arch) {
  static constexpr std::array known{"sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"};
  static constexpr std::array newer{"sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120a"};
  if (std::find(known.begin(), known.end(), arch) != known.end())
    return std::string(arch);
  if (std::find(newer.begin(), newer.end(), arch) != newer.end())
    return std::string("sm_90a");
  return fail(errc::invalid_input,
    fmt::format("'{}' is not an architecture that clang can compile for{}",
      arch.substr(0, name_max), suggestion(arch, {known.begin(), known.end()})));
}

} // namespace gristmill
