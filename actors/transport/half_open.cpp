#include "actors/transport/half_open.hpp"

#include <algorithm>
#include <map>

namespace gristmill {

std::optional<uint64_t> half_open::add(uint64_t id, const std::string& address, instant now) {
  entries_.push_back({id, address, now});
  if (entries_.size() <= most_)
    return std::nullopt;
  std::map<std::string, size_t> counts;
  for (const auto& each : entries_)
    ++counts[each.address];
  size_t most = 0;
  for (const auto& [name, count] : counts)
    most = std::max(most, count);
  const auto victim = std::find_if(entries_.begin(), entries_.end(),
    [&](const entry& each) { return counts[each.address] == most; });
  const auto gone = victim->id;
  entries_.erase(victim);
  return gone;
}

void half_open::remove(uint64_t id) {
  entries_.remove_if([id](const entry& each) { return each.id == id; });
}

std::vector<uint64_t> half_open::expired(instant now) {
  std::vector<uint64_t> out;
  while (!entries_.empty() && entries_.front().since + patience_ <= now) {
    out.push_back(entries_.front().id);
    entries_.pop_front();
  }
  return out;
}

std::optional<half_open::instant> half_open::next_deadline() const {
  if (entries_.empty())
    return std::nullopt;
  return entries_.front().since + patience_;
}

} // namespace gristmill
