// Trying victims again: candidates whose failure turned out to be their GPU's.

#include "planning/portfolio.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

using std::chrono::nanoseconds;

rerun_note portfolio::on_rerun(const rerun_request& request, nanoseconds now) {
  check_budgets(now);
  if (!stop_reason_.empty())
    return {false, "no re-run, nothing more is given out: " + stop_reason_};
  auto found = problems_.find(request.problem);
  if (found == problems_.end())
    return {false, fmt::format("no re-run: the run has no problem '{}'", request.problem)};
  auto& p = found->second;
  if (request.candidate.empty() || p.rerun_candidates.contains(request.candidate))
    return {
      false, fmt::format("no re-run: candidate '{}' was named for one before", request.candidate)};
  if (reruns_waiting() >= config_.reruns_waiting_max)
    return {false,
      fmt::format("no re-run: {} candidates wait for theirs already", config_.reruns_waiting_max)};
  for (auto& [id, f] : flights_)
    if (id.problem == request.problem && to_string(id) == request.attempt) {
      // The broker is faster than the judge.
      p.rerun_candidates.insert(request.candidate);
      f.victim = request.candidate;
      return {true, "its attempt has no verdict yet; tried again if that is a failure"};
    }
  auto failed = std::find_if(failures_.begin(), failures_.end(), [&](const failed_trial& t) {
    return t.id.problem == request.problem && to_string(t.id) == request.attempt
      && t.candidate.hash == request.candidate;
  });
  if (failed == failures_.end())
    return {false,
      fmt::format("no re-run: attempt '{}' has no failure of candidate '{}' on record",
        request.attempt, request.candidate)};
  plan_rerun(p, *failed);
  return {true, "it is tried once more"};
}

void portfolio::plan_rerun(problem& p, const failed_trial& failed) {
  p.rerun_candidates.insert(failed.candidate.hash);
  p.reruns.push_back(failed);
  // What broke around the attempt on the bad GPU says nothing about this one.
  p.broken.erase(failed.key);
  if (failed.kind == attempt_kind::baseline)
    p.baseline_failures = 0;
  if (p.state != problem_state::finished) {
    refresh(p);
    return;
  }
  p.failures_in_row = 0;
  if (failed.kind == attempt_kind::baseline) {
    p.state = problem_state::baseline;
  } else {
    p.state = problem_state::open;
    p.only_reruns = true;
  }
  refresh(p);
}

void portfolio::remember_failure(failed_trial failed) {
  if (config_.failures_remembered_max == 0)
    return;
  if (failures_.size() >= config_.failures_remembered_max)
    failures_.pop_front();
  failures_.push_back(std::move(failed));
}

size_t portfolio::reruns_waiting() const {
  size_t out = 0;
  for (const auto& [name, p] : problems_)
    out += p.reruns.size();
  for (const auto& [id, f] : flights_)
    out += f.victim.empty() ? 0 : 1;
  return out;
}

} // namespace gristmill
