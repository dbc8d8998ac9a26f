#pragma once

#include "protocol/program/candidate_rules.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace gristmill {

/// What the best candidate of a problem taught, for problems like it.
struct lesson {
  std::string strategy;
  std::string hypothesis;
  /// Against the problem's baseline.
  double speedup = 0;

  friend bool operator==(const lesson&, const lesson&) = default;
};

/// What the workers of a run have written down for each other. Losing it costs time, nothing else:
/// what counts is in the history of the planner. May be used by several threads at once.
class idea_book {
public:
  /// Lines that replace the older ones.
  void set_insights(const std::string& problem, std::vector<std::string> lines);
  std::vector<std::string> insights(const std::string& problem) const;

  /// True for the first worker that asks about this many attempts of the problem, so that each
  /// reflection is paid for once.
  bool take_reflection(const std::string& problem, uint64_t attempts);

  /// What a worker that leaves wrote down; the newest few stay.
  void note_handoff(const std::string& problem, std::string note);
  std::vector<std::string> handoffs(const std::string& problem) const;

  /// An attempt of the problem that came to no candidate, and why: shown to those who come after,
  /// because the planner's history has candidates only.
  void note_failure(const std::string& problem, std::string line);
  std::vector<std::string> failures(const std::string& problem) const;

  /// `structure` is equal for problems that compute the same thing on other shapes; problems of
  /// another structure are related when they share an operator name.
  void note_lesson(const std::string& problem, const std::string& structure,
    const std::vector<std::string>& operators, lesson what);
  /// One line for each related problem, the closest and then the fastest first.
  std::vector<std::string> knowledge(const std::string& problem, const std::string& structure,
    const std::vector<std::string>& operators) const;

  /// A candidate on its way to its verdict, for the near-duplicate filter of the others.
  void note_proposal(const std::string& problem, earlier_source what);
  std::vector<earlier_source> proposals(const std::string& problem) const;

  /// Numbers of calls, over all workers and their restarts.
  uint64_t next_call() { return next_call_++; }

private:
  struct problem_page {
    std::vector<std::string> insights;
    uint64_t reflected_at = 0;
    std::vector<std::string> handoffs;
    std::vector<std::string> failures;
    std::string structure;
    std::vector<std::string> operators;
    lesson best;
    std::vector<earlier_source> proposals;
  };

  mutable std::mutex guard_;
  std::map<std::string, problem_page> pages_;
  std::atomic<uint64_t> next_call_ = 1;
};

} // namespace gristmill
