#pragma once

#include "gpu/lease/policy.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

/// A flat JSON object with sorted keys: all that the data of a lease event needs. For the sources
/// of `lease_table` only.
class lease_line {
public:
  /// `key` is a literal, and each is added once.
  lease_line& add(std::string_view key, const std::string& text);
  lease_line& add(std::string_view key, uint64_t number);
  lease_line& add(std::string_view key, std::chrono::nanoseconds time);
  /// Nothing for an empty text.
  lease_line& add_if(std::string_view key, const std::string& text);
  std::string text() const;

private:
  struct field {
    std::string_view key;
    size_t begin = 0;
    size_t end = 0;
  };

  template <class Number>
  lease_line& add_number(std::string_view key, Number number);

  /// More than any event has; the values stand in `values_`.
  static constexpr size_t fields_max = 16;
  std::array<field, fields_max> fields_;
  size_t count_ = 0;
  std::string values_;
};

/// Who asks, for what, under which numbers.
lease_line describe(const waiter& who, uint64_t request);

double in_seconds(std::chrono::nanoseconds t);

} // namespace gristmill
