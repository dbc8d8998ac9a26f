#include "protocol/json_document.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace gristmill {

namespace {

/// Thrown out of the parser's callback, since it has no other way to stop.
struct limit_exceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct position {
  size_t line = 1;
  size_t column = 1;
};

position position_of(std::string_view text, size_t byte) {
  position at;
  for (char c : text.substr(0, std::min(byte, text.size()))) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

/// Without the parser's own prefix ("[json.exception.parse_error.101] parse error at …: ").
std::string plain_reason(std::string_view what) {
  const auto mark = what.find("syntax error");
  if (mark != std::string_view::npos)
    what.remove_prefix(mark);
  return std::string{what.substr(0, 300)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<int64_t> int_from_double(double value) {
  // 2^63 itself is a double and just out of range.
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
    return std::nullopt;
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) != value)
    return std::nullopt;
  return whole;
}

/// Digits with single underscores between them, as Python allows: "1_000".
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1))
      return std::nullopt;
  }
  return out;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  auto plain = without_underscores(trimmed(text));
  if (!plain)
    return std::nullopt;
  std::string_view digits = *plain;
  if (digits.starts_with('+'))
    digits.remove_prefix(1);
  if (digits.empty() || digits.starts_with('+'))
    return std::nullopt;
  T value{};
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

} // namespace

result<ordered_json> parse_json(
  std::string_view text, const std::string& file, const json_limits& limits) {
  if (text.size() > limits.bytes)
    return fail(errc::invalid_input,
      fmt::format(
        "{}: {} bytes of JSON, but at most {} are read", file, text.size(), limits.bytes));
  std::vector<size_t> keys;
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    using kind = ordered_json::parse_event_t;
    if (event == kind::object_start || event == kind::array_start) {
      if (static_cast<size_t>(depth) >= limits.depth)
        throw limit_exceeded{fmt::format("nested deeper than {} levels", limits.depth)};
      keys.push_back(0);
      names.emplace_back();
    } else if (event == kind::object_end || event == kind::array_end) {
      keys.pop_back();
      names.pop_back();
    } else if (event == kind::key) {
      if (++keys.back() > limits.keys)
        throw limit_exceeded{fmt::format("an object with more than {} keys", limits.keys)};
      if (limits.unique_keys && !names.back().insert(parsed.get<std::string>()).second)
        throw limit_exceeded{
          fmt::format("the key {} stands twice in one object", excerpt(parsed.get<std::string>()))};
    }
    return true;
  };
  try {
    return ordered_json::parse(text.begin(), text.end(), watch);
  } catch (const ordered_json::parse_error& error) {
    const auto at = position_of(text, error.byte == 0 ? 0 : error.byte - 1);
    return fail(errc::invalid_input,
      fmt::format(
        "{}:{}:{}: not valid JSON: {}", file, at.line, at.column, plain_reason(error.what())));
  } catch (const limit_exceeded& error) {
    return fail(errc::invalid_input, fmt::format("{}: {}", file, error.what()));
  } catch (const ordered_json::exception& error) {
    // A number outside the range of a double, for one.
    return fail(
      errc::invalid_input, fmt::format("{}: not valid JSON: {}", file, plain_reason(error.what())));
  }
}

result<std::string> read_text_file(const std::filesystem::path& path, size_t bytes_max) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status))
    return fail(errc::not_found, fmt::format("{}: no such file", path.string()));
  if (!std::filesystem::is_regular_file(status))
    return fail(errc::invalid_input, fmt::format("{}: not a regular file", path.string()));
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return fail(errc::io_failed, fmt::format("{}: cannot be opened", path.string()));
  std::string text;
  std::vector<char> block(size_t{1} << 16);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > bytes_max)
      return fail(errc::invalid_input,
        fmt::format("{}: more than {} bytes, which is the limit", path.string(), bytes_max));
  }
  if (in.bad())
    return fail(errc::io_failed, fmt::format("{}: cannot be read", path.string()));
  return text;
}

result<ordered_json> read_json_file(const std::filesystem::path& path, const json_limits& limits) {
  auto text = read_text_file(path, limits.bytes);
  if (!text)
    return pass(text);
  return parse_json(*text, path.string(), limits);
}

std::optional<int64_t> lenient_int(const ordered_json& value) {
  if (value.is_boolean())
    return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= INT64_MAX ? std::optional{static_cast<int64_t>(number)} : std::nullopt;
  }
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (value.is_number_float())
    return int_from_double(value.get<double>());
  if (value.is_string()) {
    auto text = std::string_view{value.get_ref<const std::string&>()};
    // "16.0" is an int as well; "16.5" and "1e3" are not.
    if (const auto dot = text.find('.'); dot != std::string_view::npos) {
      const auto rest = trimmed(text.substr(dot + 1));
      if (rest.find_first_not_of('0') != std::string_view::npos)
        return std::nullopt;
      text = text.substr(0, dot);
    }
    return whole_number<int64_t>(text);
  }
  return std::nullopt;
}

std::optional<double> lenient_float(const ordered_json& value) {
  if (value.is_boolean())
    return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number())
    return value.get<double>();
  if (value.is_string())
    return whole_number<double>(value.get_ref<const std::string&>());
  return std::nullopt;
}

std::optional<bool> lenient_bool(const ordered_json& value) {
  if (value.is_boolean())
    return value.get<bool>();
  if (value.is_number()) {
    const double number = value.get<double>();
    if (number == 0 || number == 1)
      return number == 1;
    return std::nullopt;
  }
  if (value.is_string()) {
    const std::string word = lower(value.get_ref<const std::string&>());
    for (const char* yes : {"true", "yes", "on", "t", "y", "1"})
      if (word == yes)
        return true;
    for (const char* no : {"false", "no", "off", "f", "n", "0"})
      if (word == no)
        return false;
  }
  return std::nullopt;
}

std::string join_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string{key} : fmt::format("{}.{}", parent, key);
}

std::string_view kind_text(const ordered_json& value) {
  switch (value.type()) {
  case ordered_json::value_t::null:
    return "null";
  case ordered_json::value_t::boolean:
    return "a bool";
  case ordered_json::value_t::number_integer:
  case ordered_json::value_t::number_unsigned:
    return "an integer";
  case ordered_json::value_t::number_float:
    return "a number with a fraction";
  case ordered_json::value_t::string:
    return "a string";
  case ordered_json::value_t::array:
    return "a list";
  case ordered_json::value_t::object:
    return "an object";
  case ordered_json::value_t::binary:
  case ordered_json::value_t::discarded:
    break;
  }
  return "nothing";
}

std::string excerpt(std::string_view text, size_t max) {
  std::string out = "`";
  const bool cut = text.size() > max;
  size_t kept = std::min(text.size(), max);
  // Not in the middle of a UTF-8 sequence.
  while (cut && kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xc0) == 0x80)
    --kept;
  for (char c : text.substr(0, kept)) {
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + (cut ? "…`" : "`");
}

} // namespace gristmill
