#pragma once

#include "gpu/lease/policy.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

/// A flat JSON object with sorted keys: all that the data of a lease event needs. It only refers to
/// keys and texts, which are written once, by `text`. For the sources of `lease_table` only.
class lease_line {
public:
  // Not defaulted: `lease_line{}` would fill the fields with zeros first.
  lease_line() {}

  /// `key` is a literal without anything to escape, and each is added once; `text` must live until
  /// the line is written.
  lease_line& add(std::string_view key, std::string_view text);
  lease_line& add(std::string_view key, std::string&& text) = delete;
  lease_line& add(std::string_view key, uint64_t number);
  lease_line& add(std::string_view key, std::chrono::nanoseconds time);
  /// Nothing for an empty text.
  lease_line& add_if(std::string_view key, std::string_view text);
  lease_line& add_if(std::string_view key, std::string&& text) = delete;
  std::string text() const;

private:
  enum class field_kind : uint8_t { text, natural, time };

  /// Without values of its own, so that those that are not used cost nothing.
  struct field {
    const char* key;
    const char* text;
    /// Bytes of the text, or the number.
    uint64_t value;
    uint32_t key_bytes;
    field_kind kind;
  };

  lease_line& add(std::string_view key, field_kind kind, const char* text, uint64_t value);

  /// More than any event has.
  static constexpr size_t fields_max = 16;
  /// Sorted by key.
  std::array<field, fields_max> fields_;
  size_t count_ = 0;
};

/// Who asks, for what, under which numbers; refers to texts of `who`.
lease_line describe(const waiter& who, uint64_t request);

double in_seconds(std::chrono::nanoseconds t);

} // namespace gristmill
