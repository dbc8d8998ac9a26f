#include "gpu/toolchain/compiler_log.hpp"

#include "gpu/toolchain/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

namespace gristmill {

namespace {

constexpr size_t lines_max = 40, bytes_max = 8192;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty())
    return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool is_path_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'
    || c == '+' || c == '~';
}

/// Leaves of an absolute path its last part. `/` between blanks, as in a division, is none.
std::string without_paths(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    const bool starts = line[i] == '/'
      && (i == 0 || (!is_path_character(line[i - 1]) && line[i - 1] != '/' && line[i - 1] != ')'));
    size_t end = i, last = i;
    while (starts && end < line.size() && (is_path_character(line[end]) || line[end] == '/')) {
      if (line[end] == '/')
        last = end;
      ++end;
    }
    if (starts && last > i) {
      out += line.substr(last + 1, end - last - 1);
      i = end;
    } else {
      out += line[i++];
    }
  }
  return out;
}

/// A line of the compiler's that quotes the source: "   12 | code", or "      | ^".
bool is_excerpt(std::string_view line) {
  size_t i = 0;
  while (
    i < line.size() && (line[i] == ' ' || std::isdigit(static_cast<unsigned char>(line[i])) != 0))
    ++i;
  return i < line.size() && line[i] == '|';
}

struct diagnostic {
  int line = 0;
  std::string_view message;
};

/// "launch-plan:1000:15: error: text"
std::optional<diagnostic> epilogue_diagnostic(std::string_view line) {
  if (!line.starts_with(epilogue_file) || line.size() <= epilogue_file.size()
    || line[epilogue_file.size()] != ':')
    return std::nullopt;
  const std::string_view rest = line.substr(epilogue_file.size() + 1);
  diagnostic found;
  std::from_chars(rest.data(), rest.data() + rest.size(), found.line);
  const std::string_view marker = ": error: ";
  if (const size_t at = rest.find(marker); at != std::string_view::npos)
    found.message = rest.substr(at + marker.size());
  return found;
}

bool starts_diagnostic(std::string_view line) {
  return line.find(": error: ") != std::string_view::npos
    || line.find(": fatal error: ") != std::string_view::npos
    || line.find(": catastrophic error: ") != std::string_view::npos
    || line.find(": warning: ") != std::string_view::npos || line.starts_with("error: ");
}

/// NVRTC writes "kernel.cu(12): error: …" where clang writes "kernel.cu:12:5: error: …".
std::string with_colons(std::string_view line) {
  const size_t close = line.find("): ");
  const size_t open = close == std::string_view::npos ? close : line.rfind('(', close);
  if (open == std::string_view::npos || open == 0 || open + 1 == close || line.find(' ') < open
    || !std::all_of(line.begin() + static_cast<std::ptrdiff_t>(open) + 1,
      line.begin() + static_cast<std::ptrdiff_t>(close),
      [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }))
    return std::string(line);
  return fmt::format("{}:{}{}", line.substr(0, open), line.substr(open + 1, close - open - 1),
    line.substr(close + 1));
}

/// NVRTC reads name expressions as lines of a file of this name; the first one is line 2.
constexpr std::string_view name_file = "__nv_name_map";

/// The text of a failed assertion, or nothing.
std::optional<std::string_view> assertion_text(std::string_view message) {
  const std::string_view plain = "static assertion failed: ";
  if (message.starts_with(plain))
    return message.substr(plain.size());
  // As NVRTC says it.
  const std::string_view with = "static assertion failed with \"";
  if (message.starts_with(with) && message.ends_with('"'))
    return message.substr(with.size(), message.size() - with.size() - 1);
  const std::string_view because = "static assertion failed due to requirement '";
  if (!message.starts_with(because))
    return std::nullopt;
  // The requirement holds no "': ": what we assert compares a number.
  const size_t end = message.find("': ", because.size());
  return end == std::string_view::npos ? std::nullopt : std::optional(message.substr(end + 3));
}

class log_builder {
public:
  explicit log_builder(const compile_unit& unit) : unit_(unit) {}

  void add(std::string_view original) {
    const std::string line = with_colons(original);
    if (const auto found = epilogue_diagnostic(line)) {
      add_epilogue(*found);
      return;
    }
    if (line.starts_with(name_file)) {
      add_name(std::string_view(line).substr(name_file.size()));
      return;
    }
    if (starts_diagnostic(line))
      skipping_ = false;
    else if (skipping_ || line.find("errors generated") != std::string_view::npos
      || line.find("error generated") != std::string_view::npos
      || line.find(" detected in the compilation of ") != std::string::npos
      || line == "Compilation terminated.")
      return;
    keep(is_excerpt(line) ? line : without_paths(line));
  }

  std::string finish() {
    if (dropped_ > 0)
      text_ += fmt::format("({} more lines)\n", dropped_);
    return std::move(text_);
  }

private:
  void add_epilogue(const diagnostic& found) {
    // The excerpt and the notes that follow show our own text.
    skipping_ = true;
    if (found.message.empty())
      return;
    if (const auto text = assertion_text(found.message)) {
      keep(fmt::format("error: {}", *text));
      return;
    }
    const auto entry = entry_of_line(found.line);
    const bool known = entry && *entry < unit_.entries.size();
    // The same expression stands in many lines of the epilogue.
    if (known && !complained_.insert(*entry).second)
      return;
    keep(known
        ? fmt::format("error: entry '{}' of the launch plan: {}", unit_.entries[*entry].expression,
          without_paths(found.message))
        : fmt::format("error: behind the end of the source: {}", without_paths(found.message)));
  }

  /// ":3: error: text" about the entry that NVRTC was asked for in that line.
  void add_name(std::string_view rest) {
    skipping_ = true;
    size_t line = 0;
    if (rest.starts_with(":"))
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), line);
    const std::string_view marker = ": error: ";
    const size_t at = rest.find(marker);
    if (at == std::string_view::npos || line < 2 || line - 2 >= unit_.entries.size()
      || !complained_.insert(line - 2).second)
      return;
    const std::string& expression = unit_.entries[line - 2].expression;
    const std::string_view message = rest.substr(at + marker.size());
    if (message.find("non-__global__") != std::string_view::npos)
      keep(fmt::format("error: entry '{}' is not a __global__ function", expression));
    else
      keep(fmt::format(
        "error: entry '{}' of the launch plan: {}", expression, without_paths(message)));
  }

  void keep(const std::string& line) {
    if (lines_ >= lines_max || text_.size() + line.size() + 1 > bytes_max) {
      ++dropped_;
      return;
    }
    text_ += line;
    text_ += '\n';
    ++lines_;
  }

  const compile_unit& unit_;
  std::string text_;
  size_t lines_ = 0, dropped_ = 0;
  bool skipping_ = false;
  std::set<size_t> complained_;
};

} // namespace

std::string readable_log(
  std::string_view output, const compile_unit& unit, const std::filesystem::path& folder) {
  std::string text(output);
  replace_all(text, folder.string() + "/", "");
  replace_all(text, folder.string(), "");
  replace_all(text, "include/gristmill/", "gristmill/");
  log_builder builder(unit);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    builder.add(std::string_view(text).substr(start, end - start));
    start = end + 1;
  }
  return builder.finish();
}

} // namespace gristmill
