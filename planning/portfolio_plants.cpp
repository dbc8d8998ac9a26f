// Candidates that come from outside while the run goes on.

#include "planning/portfolio.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace gristmill {

using std::chrono::nanoseconds;

namespace {

const std::string& key_of(const candidate_ref& c) {
  return c.key.empty() ? c.hash : c.key;
}

} // namespace

plant_note portfolio::plant(
  const std::string& name, const candidate_ref& candidate, nanoseconds now) {
  check_budgets(now);
  plant_note out;
  auto found = problems_.find(name);
  if (found == problems_.end()) {
    out.reason = fmt::format("the run has no problem '{}'", name);
    return out;
  }
  auto& p = found->second;
  const auto& key = key_of(candidate);
  auto before = std::find_if(p.history.begin(), p.history.end(), [&](const trial& t) {
    return t.effort == attempt_effort::full
      && (t.key == key || (!candidate.hash.empty() && t.candidate.hash == candidate.hash));
  });
  if (!key.empty() && before != p.history.end()) {
    out.known = true;
    out.earlier = *before;
    return out;
  }
  auto waiting = std::accumulate(problems_.begin(), problems_.end(), size_t{0},
    [](size_t sum, const auto& entry) { return sum + entry.second.planted.size(); });
  if (!config_.takes_plants)
    out.reason = "the run takes no candidates from outside";
  else if (!stop_reason_.empty())
    out.reason = "nothing more is tried: " + stop_reason_;
  else if (p.state == problem_state::finished)
    out.reason = fmt::format("problem '{}' is finished: {}", name, p.reason);
  else if (candidate.hash.empty())
    out.reason = "the candidate has no hash";
  else if (has_open(name, candidate))
    out.reason = "this very candidate is being tried";
  else if (p.known.contains(key))
    out.reason = "this candidate was tried before, and there is no record of what came of it";
  else if (waiting >= config_.plants_waiting_max)
    out.reason = fmt::format("{} candidates wait for their attempt already", waiting);
  else
    out.accepted = true;
  if (out.accepted) {
    p.planted.push_back(candidate);
    refresh(p);
  }
  return out;
}

void portfolio::plant_again(const std::string& name, const candidate_ref& candidate) {
  auto found = problems_.find(name);
  if (found == problems_.end() || found->second.state == problem_state::finished
    || has_open(name, candidate))
    return;
  found->second.planted.push_back(candidate);
  refresh(found->second);
}

bool portfolio::withdraw(const std::string& name, const std::string& candidate) {
  auto found = problems_.find(name);
  if (found == problems_.end())
    return false;
  auto& p = found->second;
  if (std::erase_if(p.planted, [&](const candidate_ref& c) { return c.hash == candidate; }) == 0)
    return false;
  check_finished(p);
  refresh(p);
  return true;
}

void portfolio::close_planting() {
  if (!config_.takes_plants)
    return;
  config_.takes_plants = false;
  for (auto& [name, p] : problems_) {
    check_finished(p);
    refresh(p);
  }
}

bool portfolio::has_open(const std::string& name, const candidate_ref& candidate) const {
  auto found = problems_.find(name);
  if (found == problems_.end())
    return false;
  const auto& p = found->second;
  const auto& key = key_of(candidate);
  for (auto ordinal : p.in_flight)
    if (flights_.at({name, config_.language, ordinal}).key == key)
      return true;
  if (!stop_reason_.empty() || p.state == problem_state::finished)
    return false;
  return std::any_of(p.planted.begin(), p.planted.end(), [&](const candidate_ref& c) {
    return key_of(c) == key;
  }) || std::any_of(p.retries.begin(), p.retries.end(), [&](const auto& r) {
    return key_of(r.second) == key;
  }) || std::any_of(p.reruns.begin(), p.reruns.end(), [&](const failed_trial& r) {
    return r.key == key;
  });
}

} // namespace gristmill
