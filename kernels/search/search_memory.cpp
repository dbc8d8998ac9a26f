#include "kernels/search/search_memory.hpp"

#include "kernels/search/search_key.hpp"

#include <algorithm>

namespace gristmill {

void search_memory::learn(
  const std::string& structure, const std::string& problem, const trial_history& history) {
  std::vector<const trial*> passed;
  for (const trial& one : history) {
    const search_key key = read_key(one.key);
    if (key.kind == search_key_kind::point && one.status == verdict_status::passed
      && one.effort == attempt_effort::full && one.objective_ns > 0)
      passed.push_back(&one);
  }
  std::stable_sort(passed.begin(), passed.end(),
    [](const trial* a, const trial* b) { return a->objective_ns < b->objective_ns; });
  passed.resize(std::min(passed.size(), points_max));
  if (passed.empty())
    return;
  auto& keys = best_[structure][problem];
  keys.clear();
  for (const trial* one : passed)
    keys.push_back(one->key);
}

std::vector<std::string> search_memory::relatives(
  const std::string& structure, const std::string& problem) const {
  std::vector<std::string> out;
  const auto family = best_.find(structure);
  if (family == best_.end())
    return out;
  for (size_t place = 0; place < points_max; ++place) {
    for (const auto& [name, keys] : family->second) {
      if (name != problem && place < keys.size()
        && std::find(out.begin(), out.end(), keys[place]) == out.end())
        out.push_back(keys[place]);
    }
  }
  return out;
}

} // namespace gristmill
