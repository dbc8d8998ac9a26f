#pragma once

#include "actors/journal.hpp"
#include "messages/event.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gristmill {

/// One attempt that is over, as its event told.
struct watched_attempt {
  std::string attempt;
  std::string problem;
  /// "baseline", "search" or "planted".
  std::string kind;
  std::string candidate;
  std::string parent;
  std::string hypothesis;
  /// Upper-case status of a verdict; else how the attempt ended.
  std::string status;
  uint64_t objective_ns = 0;
  double speedup = 0;
  double sol_score = 0;
  double floor_share = 0;
  bool improved = false;
  std::string reason;
};

/// How far a problem has come.
struct watched_problem {
  /// Its inputs and references are there.
  bool prepared = false;
  /// Why it never will be; empty while it may.
  std::string failed;
  /// Of the plain kernel; 0 before its verdict.
  uint64_t baseline_ns = 0;
  /// Of the best candidate, the baseline included; 0 for none.
  uint64_t best_ns = 0;
  std::string best_candidate;
  std::string best_attempt;
  /// Why its search ended; empty while it goes on.
  std::string finished;
};

/// What a run is doing, for those who look at it from another thread. Safe from any thread.
class run_watch {
public:
  void on_event(const event& e);

  watched_problem problem(const std::string& name) const;
  /// Attempts that are over, oldest first; of all problems when `problem` is empty.
  std::vector<watched_attempt> attempts(const std::string& problem) const;
  bool has_finished(const std::string& attempt) const;
  /// Returns at the next event, or after this time.
  void wait_for_event(std::chrono::milliseconds at_most) const;
  /// What was last heard of a candidate's attempt, in words, and how much was heard so far.
  std::pair<uint32_t, std::string> stage(const std::string& candidate) const;

private:
  mutable std::mutex mutex_;
  mutable std::condition_variable heard_;
  std::map<std::string, watched_problem> problems_;
  std::vector<watched_attempt> attempts_;
  std::map<std::string, std::pair<uint32_t, std::string>> stages_;
  /// Candidate of each attempt that was given out with one.
  std::map<std::string, std::string> given_;
};

/// Stores events in `inner` and shows them to `watch` once they are stored.
std::unique_ptr<event_sink> watched(
  std::unique_ptr<event_sink> inner, std::shared_ptr<run_watch> watch);

} // namespace gristmill
