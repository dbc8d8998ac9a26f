#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Reads the fields of one lenient document (specification, section 0) and collects everything
/// that is wrong with them, so that a person mends a file once and not field by field. At most a
/// hundred errors and a hundred warnings are kept.
class field_reader {
public:
  void error(std::string_view path, std::string why);
  /// About the field at `path`, which the text names.
  void warn(std::string_view path, std::string text);
  bool failed() const { return error_count_ > 0; }
  /// Also those that were not kept.
  size_t error_count() const { return error_count_; }

  /// One line an error: "where: path: why".
  failure collected(const std::string& where) const;
  /// The same for a document that has lines: "file:line: path: why".
  failure collected(const std::string& file, std::string_view document_text) const;
  /// Without the name of the file.
  std::vector<std::string> warnings() const;
  /// Appends the warnings as "file:line: text" unless the list is null.
  void give_warnings(const std::string& file, std::string_view document_text,
    std::vector<std::string>* warnings) const;

  /// Warns about each key that is not among the known ones.
  void ignore_others(const ordered_json& object, std::string_view path,
    std::initializer_list<std::string_view> known);

  enum class need : uint8_t {
    /// A non-empty string.
    required,
    /// A non-empty string, null or nothing.
    optional,
    /// Any string, null or nothing.
    free,
    /// Any string or nothing.
    not_null,
    /// Any string.
    present,
  };
  /// The text, empty for null and for what is missing.
  std::string text(const ordered_json& object, std::string_view path, const char* key, need kind);

  /// A list of strings, which must not be empty (`need::required`) or may be (`need::present`).
  /// Empty when it is missing and `required` is false; a wrong entry is an empty text in it.
  std::vector<std::string> texts(const ordered_json& object, std::string_view path, const char* key,
    bool required, need entries = need::required);

  /// A lenient bool, int or float; the fallback when it is missing. Null is an error.
  bool boolean(const ordered_json& object, std::string_view path, const char* key, bool fallback);
  int64_t integer(
    const ordered_json& object, std::string_view path, const char* key, int64_t fallback);
  double number(
    const ordered_json& object, std::string_view path, const char* key, double fallback);

  /// The member, if it is there and an object; else an error and null.
  const ordered_json* object(const ordered_json& parent, std::string_view path, const char* key);

private:
  struct remark {
    std::string path;
    std::string text;
  };
  static void keep(std::vector<remark>& list, std::string_view path, std::string text);

  size_t error_count_ = 0;
  std::vector<remark> errors_;
  std::vector<remark> warnings_;
};

} // namespace gristmill
