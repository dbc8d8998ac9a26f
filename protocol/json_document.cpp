#include "protocol/json_document.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <limits>
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

/// The blanks that may surround a number in a string: those of Unicode, in UTF-8.
constexpr std::array<std::string_view, 25> blanks{" ", "\t", "\n", "\v", "\f", "\r", "\xc2\x85",
  "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83",
  "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89",
  "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

std::string_view trimmed(std::string_view text) {
  for (bool again = true; again;) {
    again = false;
    for (const auto blank : blanks) {
      if (text.starts_with(blank)) {
        text.remove_prefix(blank.size());
        again = true;
      }
      if (text.ends_with(blank)) {
        text.remove_suffix(blank.size());
        again = true;
      }
    }
  }
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// An optional sign, then digits with single underscores between them: "1_000". In out_of_range the
/// digits are right and too many.
enum class whole_kind : uint8_t { none, fits, out_of_range };

whole_kind read_whole(std::string_view text, int64_t& value) {
  text = trimmed(text);
  // ".000" behind the digits changes nothing; any other fraction, or an empty one, is no integer.
  if (const auto dot = text.find('.'); dot != std::string_view::npos) {
    const auto zeros = text.substr(dot + 1);
    if (zeros.empty() || zeros.find_first_not_of('0') != std::string_view::npos)
      return whole_kind::none;
    text = text.substr(0, dot);
  }
  std::string plain;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    plain = text[0] == '-' ? "-" : "";
    text.remove_prefix(1);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_digit(text[i]))
      plain += text[i];
    else if (text[i] != '_' || i == 0 || !is_digit(text[i - 1]) || i + 1 == text.size()
      || !is_digit(text[i + 1]))
      return whole_kind::none;
  }
  if (text.empty())
    return whole_kind::none;
  const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  return read.ec == std::errc{} ? whole_kind::fits : whole_kind::out_of_range;
}

/// A decimal number with a sign, or the words inf, infinity and nan. What is too big is infinite
/// and what is too small is zero.
std::optional<double> read_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+'))
    text.remove_prefix(1);
  // The words may not carry brackets, nor a second sign.
  if (text.empty() || text[0] == '-' || text.find('(') != std::string_view::npos)
    return std::nullopt;
  const char* const last = text.data() + text.size();
  double value = 0;
  const auto read = std::from_chars(text.data(), last, value);
  if (read.ptr != last || read.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    // A wider type knows on which side, except for exponents of thousands.
    long double wide = 0;
    if (std::from_chars(text.data(), last, wide).ec == std::errc::result_out_of_range)
      wide = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos
        ? 0
        : std::numeric_limits<long double>::infinity();
    value = static_cast<double>(wide);
  }
  return negative ? -value : value;
}

/// Underscores may also stand where no digit is beside them ("1_.5"), but not doubled, not at
/// either end and not together with surrounding blanks.
std::optional<double> read_decimal_lenient(std::string_view text) {
  if (const auto plain = read_decimal(trimmed(text)))
    return plain;
  if (text.starts_with('_') || text.ends_with('_') || text.find("__") != std::string_view::npos)
    return std::nullopt;
  std::string digits{text};
  std::erase(digits, '_');
  return read_decimal(digits);
}

// What stands in for the words of Python until the document is parsed.
constexpr std::array<std::pair<std::string_view, double>, 3> python_words{{
  {"NaN", std::numeric_limits<double>::quiet_NaN()},
  {"-Infinity", -std::numeric_limits<double>::infinity()},
  {"Infinity", std::numeric_limits<double>::infinity()},
}};
constexpr std::string_view stand_in = "gristmill stand-in for ";
/// More of them are no accident; the stand-ins are longer than the words.
constexpr size_t python_words_max = 10'000;

/// The number that begins here if no double can hold it, which Python reads as infinite.
std::string_view too_big_number(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("+-.0123456789Ee"), text.size());
  const auto number = text.substr(0, end);
  if (number.find_first_of("eE") == std::string_view::npos)
    return {};
  const auto value = read_decimal(number);
  return value && std::isinf(*value) ? number : std::string_view{};
}

/// The text with those words and with numbers beyond a double as strings, or nothing when it has
/// none outside its strings.
std::optional<std::string> without_python_words(std::string_view text) {
  std::string out;
  size_t found = 0;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      size_t end = at + 1;
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      out += text.substr(at, end - at);
      at = end;
      continue;
    }
    const auto rest = text.substr(at);
    const auto word = std::find_if(python_words.begin(), python_words.end(),
      [&](const auto& each) { return rest.starts_with(each.first); });
    std::string_view taken;
    std::string_view meant;
    if (word != python_words.end()) {
      taken = meant = word->first;
    } else if (is_digit(text[at]) || text[at] == '-') {
      taken = too_big_number(rest);
      meant = taken.starts_with('-') ? "-Infinity" : "Infinity";
      if (taken.empty()) {
        // The rest of the number is not looked at again.
        const size_t end = std::min(rest.find_first_not_of("+-.0123456789Ee"), rest.size());
        const size_t kept = rest[0] == '-' && end == 1 ? 1 : end;
        out += rest.substr(0, kept);
        at += kept;
        continue;
      }
    }
    if (taken.empty()) {
      out += text[at++];
      continue;
    }
    if (++found > python_words_max)
      return std::nullopt;
    out += fmt::format("\"{}{}\"", stand_in, meant);
    at += taken.size();
  }
  return found > 0 ? std::optional{std::move(out)} : std::nullopt;
}

/// The depth is limited by now.
void put_python_numbers(ordered_json& value) {
  if (value.is_structured()) {
    for (auto& each : value)
      put_python_numbers(each);
  } else if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    if (!text.starts_with(stand_in))
      return;
    for (const auto& [word, number] : python_words) {
      if (text.substr(stand_in.size()) == word) {
        value = number;
        return;
      }
    }
  }
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
  // What Python reads beyond strict JSON is looked for only when that failed.
  const auto read_as_python = [&]() -> std::optional<result<ordered_json>> {
    const auto plain = limits.python_numbers ? without_python_words(text) : std::nullopt;
    if (!plain)
      return std::nullopt;
    auto strict = limits;
    strict.python_numbers = false;
    strict.bytes = SIZE_MAX;
    auto document = parse_json(*plain, file, strict);
    if (document)
      put_python_numbers(*document);
    return document;
  };
  try {
    return ordered_json::parse(text.begin(), text.end(), watch);
  } catch (const ordered_json::parse_error& error) {
    if (auto read = read_as_python())
      return std::move(*read);
    const auto at = position_of(text, error.byte == 0 ? 0 : error.byte - 1);
    return fail(errc::invalid_input,
      fmt::format(
        "{}:{}:{}: not valid JSON: {}", file, at.line, at.column, plain_reason(error.what())));
  } catch (const limit_exceeded& error) {
    return fail(errc::invalid_input, fmt::format("{}: {}", file, error.what()));
  } catch (const ordered_json::exception& error) {
    // A number outside the range of a double, for one.
    if (auto read = read_as_python())
      return std::move(*read);
    return fail(
      errc::invalid_input, fmt::format("{}: not valid JSON: {}", file, plain_reason(error.what())));
  }
}

result<ordered_json> parse_json_object(
  std::string_view text, const std::string& file, const json_limits& limits) {
  auto document = parse_json(text, file, limits);
  if (document && !document->is_object())
    return fail(errc::invalid_input,
      fmt::format("{}: must be an object, not {}", file, kind_text(*document)));
  return document;
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
  int64_t whole = 0;
  if (value.is_string()
    && read_whole(value.get_ref<const std::string&>(), whole) == whole_kind::fits)
    return whole;
  return std::nullopt;
}

bool is_oversized_int(const ordered_json& value) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() > INT64_MAX;
  if (value.is_number_float()) {
    // The parser's form of an integer beyond 64 bits; a float of that size has no fraction.
    const double number = value.get<double>();
    return std::isfinite(number)
      && (number < -9223372036854775808.0 || number >= 9223372036854775808.0);
  }
  int64_t whole = 0;
  return value.is_string()
    && read_whole(value.get_ref<const std::string&>(), whole) == whole_kind::out_of_range;
}

bool has_oversized_literal(std::string_view text, double value) {
  if (value > -9223372036854775808.0 && value < 9223372036854775808.0)
    return false;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\')
          ++at;
      ++at;
    } else if (is_digit(text[at]) || text[at] == '-') {
      const auto rest = text.substr(at);
      const auto number = rest.substr(
        0, std::max<size_t>(1, std::min(rest.find_first_not_of("+-.0123456789Ee"), rest.size())));
      int64_t whole = 0;
      if (read_whole(number, whole) == whole_kind::out_of_range
        && number.find('.') == std::string_view::npos && read_decimal(number) == value)
        return true;
      at += number.size();
    } else {
      ++at;
    }
  }
  return false;
}

std::optional<double> lenient_float(const ordered_json& value) {
  if (value.is_boolean())
    return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number())
    return value.get<double>();
  if (value.is_string())
    return read_decimal_lenient(value.get_ref<const std::string&>());
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
