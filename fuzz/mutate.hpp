#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::fuzz {

/// Numbers that depend on the seed only, the same on every machine.
class dice {
public:
  explicit dice(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// 0 .. end-1; 0 when there is nothing to choose from.
  size_t below(size_t end) { return end == 0 ? 0 : static_cast<size_t>(next() % end); }

private:
  uint64_t state_;
};

/// One to four changes to `text`: bits, bytes, cuts, repeats, pieces of another seed, numbers at
/// the edge of their range, other JSON values, a hundred brackets. At most `bytes_max` long.
std::string mutated(
  std::string text, const std::vector<std::string>& seeds, dice& rolls, size_t bytes_max);

} // namespace gristmill::fuzz
