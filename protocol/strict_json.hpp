#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Reads a JSON object whose every key is known, for the formats that our own programs write to
/// each other. The first failure is kept in the sink and all later reads answer an empty value, so
/// that a reader is a list of fields with one check at its end.
class strict_object {
public:
  /// `path` names the object in messages: "job.run.workloads[3]".
  strict_object(const ordered_json& value, std::string path, std::optional<failure>& sink);
  strict_object(const strict_object&) = delete;
  strict_object& operator=(const strict_object&) = delete;
  /// Complains about a key that nobody has asked for.
  ~strict_object();

  bool has(std::string_view key) const;
  /// True when the key stands there with null; it then counts as read.
  bool is_null(std::string_view key);
  std::string text(std::string_view key, size_t bytes_max);
  bool boolean(std::string_view key);
  uint64_t natural(std::string_view key, uint64_t max = UINT64_MAX);
  uint32_t natural32(std::string_view key, uint32_t max = UINT32_MAX);
  int64_t integer(std::string_view key, int64_t min = INT64_MIN, int64_t max = INT64_MAX);
  /// A number, or one of the texts "inf", "-inf" and "nan".
  double number(std::string_view key);
  /// The index of the text among the choices.
  size_t choice(std::string_view key, const std::vector<std::string>& choices);
  /// Pairs of hexadecimal digits in lower case.
  std::vector<uint8_t> hex(std::string_view key, size_t bytes_max);
  std::vector<int64_t> integers(std::string_view key, size_t count_max);
  /// Calls `read` with each element of an array and its path.
  void each(std::string_view key, size_t count_max,
    const std::function<void(const ordered_json&, std::string)>& read);
  /// Calls `read` with each key and value of an object, in their order, and the value's path.
  void each_member(std::string_view key, size_t count_max,
    const std::function<void(const std::string&, const ordered_json&, std::string)>& read);
  /// Calls `read` with the object of that key.
  void object(std::string_view key, const std::function<void(strict_object&)>& read);

  /// Puts a failure about a field into the sink, unless there is one.
  void complain(std::string_view key, std::string_view what);
  bool failed() const { return sink_.has_value(); }
  const std::string& path() const { return path_; }
  std::optional<failure>& sink() { return sink_; }

private:
  const ordered_json* find(std::string_view key);

  const ordered_json& value_;
  std::string path_;
  std::optional<failure>& sink_;
  std::vector<std::string> asked_;
};

/// A double as `strict_object::number` reads it.
ordered_json number_to_json(double value);
/// Bytes as `strict_object::hex` reads them.
std::string hex_text(const std::vector<uint8_t>& bytes);

} // namespace gristmill
