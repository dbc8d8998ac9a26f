#include "cli/run_watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gristmill {

using nlohmann::json;

namespace {

/// Empty for what is no step of an attempt.
std::string stage_of(const event& e) {
  if (e.kind == "planted")
    return "in line for an attempt";
  if (e.kind == "assigned")
    return "compiling";
  if (e.kind == "compiled")
    return "compiled; waiting for a GPU";
  if (e.kind == "lease_grant")
    return "measuring";
  if (e.kind == "lease_release" || e.kind == "lease_verified")
    return "judging";
  if (e.kind == "screened")
    return "screened; its promotion is being prepared";
  if (e.kind == "verdict" || e.kind == "no_verdict")
    return "judged";
  return {};
}

} // namespace

void run_watch::on_event(const event& e) {
  auto data = json::parse(e.data, nullptr, false);
  if (!data.is_object())
    data = json::object();
  std::lock_guard lock(mutex_);
  heard_.notify_all();
  if (e.kind == "assigned" && data.contains("given"))
    given_[e.attempt] = data.value("given", std::string{});
  if (auto words = stage_of(e); !words.empty()) {
    auto given = given_.find(e.attempt);
    const auto& candidate = given != given_.end() ? given->second : e.candidate;
    if (!candidate.empty()) {
      auto& stage = stages_[candidate];
      ++stage.first;
      stage.second = std::move(words);
    }
  }
  if (e.kind == "problem_prepared") {
    auto& p = problems_[e.problem];
    p.prepared = data.value("status", std::string{}) == "PASSED";
    if (!p.prepared)
      p.failed = "preparing failed: " + e.reason;
  } else if (e.kind == "problem_finished") {
    problems_[e.problem].finished = e.reason;
  } else if (e.kind == "attempt_finished") {
    watched_attempt a;
    a.attempt = e.attempt;
    a.problem = e.problem;
    a.kind = data.value("kind", std::string{});
    a.candidate = e.candidate;
    a.parent = data.value("parent", std::string{});
    a.hypothesis = data.value("hypothesis", std::string{});
    a.status = data.value("status", data.value("outcome", std::string{}));
    a.objective_ns = data.value("objective_ns", uint64_t{0});
    a.speedup = data.value("speedup", 0.0);
    a.sol_score = data.value("sol_score", 0.0);
    a.floor_share = data.value("floor_share", 0.0);
    a.improved = data.value("improved", false);
    a.reason = e.reason;
    auto& p = problems_[e.problem];
    if (a.kind == "baseline" && a.status == "PASSED")
      p.baseline_ns = a.objective_ns;
    if (a.improved) {
      p.best_ns = a.objective_ns;
      p.best_candidate = a.candidate;
      p.best_attempt = a.attempt;
    }
    stages_.erase(a.candidate);
    given_.erase(a.attempt);
    attempts_.push_back(std::move(a));
  }
}

watched_problem run_watch::problem(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = problems_.find(name);
  return found == problems_.end() ? watched_problem{} : found->second;
}

std::vector<watched_attempt> run_watch::attempts(const std::string& problem) const {
  std::lock_guard lock(mutex_);
  std::vector<watched_attempt> out;
  for (const auto& a : attempts_)
    if (problem.empty() || a.problem == problem)
      out.push_back(a);
  return out;
}

bool run_watch::has_finished(const std::string& attempt) const {
  std::lock_guard lock(mutex_);
  return std::any_of(attempts_.rbegin(), attempts_.rend(),
    [&](const watched_attempt& a) { return a.attempt == attempt; });
}

void run_watch::wait_for_event(std::chrono::milliseconds at_most) const {
  std::unique_lock lock(mutex_);
  heard_.wait_for(lock, at_most);
}

std::pair<uint32_t, std::string> run_watch::stage(const std::string& candidate) const {
  std::lock_guard lock(mutex_);
  auto found = stages_.find(candidate);
  return found == stages_.end() ? std::pair<uint32_t, std::string>{} : found->second;
}

namespace {

class watched_sink final : public event_sink {
public:
  watched_sink(std::unique_ptr<event_sink> inner, std::shared_ptr<run_watch> watch)
    : inner_(std::move(inner)), watch_(std::move(watch)) {}

  result<uint64_t> append(std::span<const event> events, durability how) override {
    auto stored = inner_->append(events, how);
    if (stored)
      for (const auto& e : events)
        watch_->on_event(e);
    return stored;
  }

private:
  std::unique_ptr<event_sink> inner_;
  std::shared_ptr<run_watch> watch_;
};

} // namespace

std::unique_ptr<event_sink> watched(
  std::unique_ptr<event_sink> inner, std::shared_ptr<run_watch> watch) {
  return std::make_unique<watched_sink>(std::move(inner), std::move(watch));
}

} // namespace gristmill
