#include "gpu/children/median.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gristmill {

uint64_t median_of(std::vector<uint64_t> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1)
    return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

uint64_t deviation_of(const std::vector<uint64_t>& values) {
  const auto middle = median_of(values);
  auto away = values;
  for (auto& value : away)
    value = value > middle ? value - middle : middle - value;
  return median_of(std::move(away));
}

} // namespace gristmill
