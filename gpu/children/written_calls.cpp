#include "gpu/children/written_calls.hpp"

#include <algorithm>
#include <utility>

namespace gristmill {

written_calls::decision written_calls::consider(
  uint32_t call, bool equal, bool is_shared, uint64_t draw) {
  ++(equal ? equal_ : unequal_);
  if ((equal && !is_shared) || most_ == 0)
    return {};
  const uint64_t seen = equal ? ++shared_ : unequal_;
  auto& kept = equal ? kept_equal_ : kept_unequal_;
  if (kept_equal_.size() + kept_unequal_.size() < most_) {
    kept.push_back(call);
    return {true, {}};
  }
  if (!equal && !kept_equal_.empty()) {
    const auto victim = kept_equal_.begin() + static_cast<ptrdiff_t>(draw % kept_equal_.size());
    const uint32_t drop = *victim;
    kept_equal_.erase(victim);
    kept.push_back(call);
    return {true, drop};
  }
  // The reservoir: the n-th of its kind takes a place with the chance of places / n.
  const uint64_t place = draw % seen;
  if (place >= kept.size())
    return {};
  return {true, std::exchange(kept[place], call)};
}

std::vector<uint32_t> written_calls::kept() const {
  auto all = kept_equal_;
  all.insert(all.end(), kept_unequal_.begin(), kept_unequal_.end());
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace gristmill
