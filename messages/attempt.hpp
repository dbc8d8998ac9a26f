#pragma once

#include "messages/blob.hpp"
#include "messages/candidate.hpp"
#include "messages/trial.hpp"
#include "messages/verdict.hpp"
#include "messages/wire.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

/// One try at one problem: propose, compile, measure, judge. Never reused within a run.
struct attempt_id {
  std::string problem;
  /// "cuda" today; incumbents are kept apart by language.
  std::string language;
  /// Counts from 0 in each (problem, language); 0 is the baseline.
  uint32_t ordinal = 0;

  friend auto operator<=>(const attempt_id&, const attempt_id&) = default;
};

/// "problem/language/ordinal", the form in logs and events.
std::string to_string(const attempt_id& id);

enum class attempt_kind : uint8_t {
  /// The frozen plain kernel whose time is T_b.
  baseline = 0,
  /// A candidate of the proposer.
  search,
  /// A candidate given by file.
  planted,
};

std::string to_string(attempt_kind kind);

/// What the planner hands to a worker: one attempt.
struct assignment {
  attempt_id id;
  attempt_kind kind = attempt_kind::search;
  /// Device model the candidate is for, such as "h200"; compile and lease follow it.
  std::string device_model;
  /// Seed of this attempt, derived from the run's seed and the id.
  uint64_t seed = 0;
  /// All finished trials of the problem, oldest first; the proposer needs no memory of its own.
  trial_history history;
  /// Keys that other workers are trying right now.
  std::vector<std::string> in_flight;
  /// Only for planted attempts: the given candidate.
  maybe<candidate_ref> given;
  /// Operator graph of the problem (schema gristmill.graph/1); empty when there is none.
  blob_ref graph;
  /// The problem that this worker was on before, when the planner moved it; else empty.
  std::string moved_from;
  /// What workers who left this problem wrote down for the next one, oldest first.
  std::vector<std::string> notes;
};

/// How an attempt ended, seen from the planner.
enum class attempt_outcome : uint8_t {
  /// A verdict was reached (passed or not): the candidate is known from now on.
  judged = 0,
  /// The proposer has nothing (more) for this problem.
  exhausted,
  /// No template or other source fits the problem at all.
  no_candidate,
  /// Something of ours broke or came too late; the candidate stays unknown.
  infrastructure,
  /// The run drained before a verdict.
  abandoned,
  /// The proposer had none this time; the attempt is used up all the same.
  unproposed,
};

std::string to_string(attempt_outcome outcome);

/// What a worker reports when its attempt is over; exactly one for each assignment.
struct attempt_summary {
  attempt_id id;
  attempt_kind kind = attempt_kind::search;
  std::string worker;
  attempt_outcome outcome = attempt_outcome::infrastructure;
  candidate_ref candidate;
  attempt_effort effort = attempt_effort::full;
  /// Meaningful when `outcome` is judged.
  verdict_status status = verdict_status::not_checked;
  uint64_t objective_ns = 0;
  f64 speedup;
  f64 sol_score;
  f64 floor_share;
  /// As in `verdict`: it does not become the best of its problem.
  bool incumbent_stays = false;
  /// Time the leases were held, grant to verified release.
  uint64_t gpu_ns = 0;
  /// As in `trial`.
  std::vector<workload_time> times;
  /// As in `verdict`.
  blob_ref feedback;
  /// What the next worker on this problem should know; at most one line.
  std::string note;
  /// One line for a person.
  std::string reason;
};

} // namespace gristmill
