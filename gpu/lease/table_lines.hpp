#pragma once

#include "gpu/lease/policy.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace gristmill {

/// A flat JSON object with sorted keys: all that the data of a lease event needs. For the sources
/// of `lease_table` only.
class lease_line {
public:
  lease_line& add(const std::string& key, const std::string& text);
  lease_line& add(const std::string& key, uint64_t number);
  lease_line& add(const std::string& key, std::chrono::nanoseconds time);
  /// Nothing for an empty text.
  lease_line& add_if(const std::string& key, const std::string& text);
  std::string text() const;

private:
  std::map<std::string, std::string> fields_;
};

/// Who asks, for what, under which numbers.
lease_line describe(const waiter& who, uint64_t request);

double in_seconds(std::chrono::nanoseconds t);

} // namespace gristmill
