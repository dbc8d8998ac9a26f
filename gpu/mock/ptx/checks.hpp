#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::ptx {

/// What can be looked for besides what every run sees (bounds, alignment, barriers, masks,
/// deadlocks). Bits of a `check_set`.
enum class check : uint32_t {
  shared_races = 1,
  global_races = 2,
  /// Values that nobody has given.
  uninitialised = 4,
  /// Results that are read before they are written.
  outputs = 8,
  /// Proxy fences between writes of threads and reads of copies and wgmma.
  fences = 16,
  wgmma = 32,
  mbarriers = 64
};

using check_set = uint32_t;
constexpr check_set all_checks = 127;

inline bool has(check_set set, check one) {
  return (set & static_cast<check_set>(one)) != 0;
}

struct check_name {
  check which;
  std::string_view name;
};

/// "shared-races", "global-races", ... in the order of the bits.
const std::vector<check_name>& check_names();

/// The names of a set.
std::vector<std::string> names_of(check_set set);

} // namespace gristmill::ptx
