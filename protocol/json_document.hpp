#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// Objects keep the order of their keys: axes, inputs and outputs depend on it.
using ordered_json = nlohmann::ordered_json;

/// Everything that is read was written by a stranger.
struct json_limits {
  size_t bytes = size_t{64} << 20;
  size_t depth = 64;
  /// Keys of one object; looking a key up is linear.
  size_t keys = 4096;
  /// Refuses a key that is written twice in one object.
  bool unique_keys = false;
  /// Also reads the words NaN, Infinity and -Infinity as numbers, and 1e400 as infinite, as Python
  /// does.
  bool python_numbers = false;
};

/// Parses strict JSON. `file` only stands in the message, which has line and column. Of a key
/// that is written twice the last value counts, as in Python, unless the limits refuse it.
result<ordered_json> parse_json(
  std::string_view text, const std::string& file, const json_limits& limits = {});

/// The same for a document that must be an object.
result<ordered_json> parse_json_object(
  std::string_view text, const std::string& file, const json_limits& limits = {});

/// The bytes of a file: `not_found`, `io_failed`, or `invalid_input` above the limit.
result<std::string> read_text_file(const std::filesystem::path& path, size_t bytes_max);

/// Both of the above.
result<ordered_json> read_json_file(
  const std::filesystem::path& path, const json_limits& limits = {});

// The lenient scalars of the specification, section 0. Nothing when the value does not fit.

/// 16, 16.0, "16", " 1_600.0 " and true; not 16.5, "16.", "1e3", null or "x".
std::optional<int64_t> lenient_int(const ordered_json& value);
/// An integer, a string that is one, or a finite float, which 64 bits cannot hold.
bool is_oversized_int(const ordered_json& value);
/// True when the JSON text has, outside its strings, an integer beyond 64 bits that reads as this
/// double: the parser keeps nothing else of it, while 1e20 is a number with an exponent.
bool has_oversized_literal(std::string_view text, double value);
/// A number, a bool or a numeric string such as "1e-3". May be infinite or NaN ("inf"). Digits that
/// are not ASCII are none.
std::optional<double> lenient_float(const ordered_json& value);
/// true, 1, 1.0 and true/yes/on/t/y/1 with their opposites, in any case.
std::optional<bool> lenient_bool(const ordered_json& value);

/// "axes" and "M" give "axes.M"; an empty parent gives the key alone.
std::string join_path(std::string_view parent, std::string_view key);

/// The kind of a JSON value in words, for messages: "a string", "null".
std::string_view kind_text(const ordered_json& value);

/// A text from outside as it may stand in a message: control characters escaped, cut at `max`.
std::string excerpt(std::string_view text, size_t max = 60);

} // namespace gristmill
