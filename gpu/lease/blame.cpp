#include "gpu/lease/blame.hpp"

#include <algorithm>

namespace gristmill {

using std::chrono::nanoseconds;

blame_matrix::effect blame_matrix::on_failure(
  const std::string& candidate, const blame_failure& failure) {
  effect out;
  bool counts = failure.how == lease_outcome::fault || failure.how == lease_outcome::hang;
  if (candidate.empty() || !counts || config_.candidates_max == 0)
    return out;
  auto known = candidates_.find(candidate);
  if (known == candidates_.end()) {
    if (candidates_.size() >= config_.candidates_max)
      forget(std::string{std::get<2>(*by_age_.begin())});
    known = candidates_.try_emplace(candidate).first;
  } else {
    by_age_.erase(key_of(candidate, known->second));
  }
  auto& r = known->second;
  bool was_poison = is_poison(r);
  // More cells than it takes to be poison tell nothing new, so the row stays short.
  if (!was_poison || r.failures.contains(failure.gpu)) {
    r.failures[failure.gpu] = failure;
    on_gpu_[failure.gpu].insert(candidate);
  }
  r.newest = std::max(r.newest, failure.at);
  by_age_.insert(key_of(candidate, r));
  out.poisoned = !was_poison && is_poison(r);

  // Poison would fail anywhere, so it says nothing about this GPU.
  auto since = failure.at - config_.window;
  if (auto it = absolved_.find(failure.gpu); it != absolved_.end())
    since = std::max(since, it->second);
  uint32_t against = 0;
  for (const auto& name : on_gpu_[failure.gpu]) {
    const auto& other = candidates_.at(name);
    if (!is_poison(other) && other.failures.at(failure.gpu).at > since)
      ++against;
  }
  out.gpu_suspect = !is_poison(r) && against >= config_.suspect_candidates;
  return out;
}

blame_matrix::standing blame_matrix::of(const std::string& candidate) const {
  auto it = candidates_.find(candidate);
  if (it == candidates_.end())
    return standing::clean;
  return is_poison(it->second) ? standing::poison : standing::retry_elsewhere;
}

std::vector<blame_failure> blame_matrix::failures(const std::string& candidate) const {
  std::vector<blame_failure> out;
  if (auto it = candidates_.find(candidate); it != candidates_.end())
    for (const auto& [gpu, failure] : it->second.failures)
      out.push_back(failure);
  return out;
}

void blame_matrix::absolve_gpu(uint32_t gpu, nanoseconds now) {
  absolved_[gpu] = now;
}

std::vector<blame_victim> blame_matrix::condemn_gpu(uint32_t gpu) {
  std::vector<blame_victim> out;
  auto found = on_gpu_.extract(gpu);
  if (found.empty())
    return out;
  for (const auto& name : found.mapped()) {
    auto it = candidates_.find(name);
    auto& r = it->second;
    by_age_.erase(key_of(name, r));
    auto cell = r.failures.extract(gpu);
    if (r.failures.empty()) {
      out.push_back({name, std::move(cell.mapped())});
      candidates_.erase(it);
    } else {
      by_age_.insert(key_of(name, r));
    }
  }
  return out;
}

void blame_matrix::forget(const std::string& candidate) {
  auto it = candidates_.find(candidate);
  by_age_.erase(key_of(candidate, it->second));
  for (const auto& [gpu, failure] : it->second.failures)
    on_gpu_[gpu].erase(candidate);
  candidates_.erase(it);
}

} // namespace gristmill
