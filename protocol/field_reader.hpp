#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Reads the fields of one lenient document (specification, section 0) and collects everything
/// that is wrong with them, so that a person mends a file once and not field by field.
class field_reader {
public:
  void error(std::string_view path, const std::string& why);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  bool failed() const { return !errors_.empty(); }

  /// One line a field: "where: path: why".
  failure collected(const std::string& where) const;
  /// Without the name of the file.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Warns about each key that is not among the known ones.
  void ignore_others(
    const ordered_json& object, std::string_view path, const std::vector<std::string>& known);

  enum class need : uint8_t {
    /// A non-empty string.
    required,
    /// A non-empty string, null or nothing.
    optional,
    /// Any string, null or nothing.
    free,
  };
  /// The text, empty for null and for what is missing.
  std::string text(const ordered_json& object, std::string_view path, const char* key, need kind);

  /// The member, if it is there and an object; else an error and null.
  const ordered_json* object(const ordered_json& parent, std::string_view path, const char* key);

private:
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
};

} // namespace gristmill
