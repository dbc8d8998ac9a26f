#pragma once

#include "messages/attempt.hpp"
#include "messages/compile.hpp"
#include "messages/event.hpp"
#include "messages/plant.hpp"
#include "messages/prepare.hpp"
#include "messages/result.hpp"
#include "planning/portfolio.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gristmill {

// The events that a run can be restored from: how they are written and how they are read, side by
// side. Reading answers `invalid_input` with the field, for a line that is not of this form.

/// Version of the data below; `history` of the event run_started. Logs without it cannot be gone on
/// from.
inline constexpr uint32_t run_history_version = 1;

/// Names and keys come from files of strangers: what is not UTF-8 must not end an actor.
std::string text_of(const nlohmann::json& data);

/// "problem/language/ordinal" taken apart; the problem's name may hold slashes.
result<attempt_id> attempt_id_from(const std::string& text);

/// Writes a candidate into the data of an event: key, parent, hypothesis, source, plan.
void add_candidate(nlohmann::json& data, const candidate_ref& candidate);
candidate_ref candidate_from(const nlohmann::json& data, const std::string& hash);
/// Writes where the feedback lies, if there is any.
void add_feedback(nlohmann::json& data, const blob_ref& feedback);

event prepared_event(const prepared_problem& prepared);
result<prepared_problem> prepared_from(const event& e);

event assigned_event(const planner_decision& decision, const std::string& worker);
struct assigned_fact {
  std::string worker;
  attempt_kind kind = attempt_kind::search;
  /// Hash of the candidate that was given with it; empty for none.
  std::string candidate;
};
result<assigned_fact> assigned_from(const event& e);

/// A candidate from outside was taken into the run.
event planted_event(const plant_request& request);
result<candidate_ref> planted_from(const event& e);

event moved_event(const planner_decision& decision, const std::string& worker);

event claimed_event(const claim_request& claim);
result<claim_request> claimed_from(const event& e);

event finished_event(const attempt_summary& summary, const planner_note& note);
result<attempt_summary> finished_from(const event& e);

/// What the summary of an attempt would have said whose verdict is in the log.
result<attempt_summary> summary_of_verdict(const event& verdict);

event lost_event(const attempt_id& id, const std::string& worker);
/// What a compiler has made, wherever it ran. Nothing is restored from it.
event compiled_event(const compile_request& of, const compiled_candidate& compiled);
/// Of a worker whose machine is gone: the attempt ends without having failed.
event interrupted_event(const attempt_id& id, const std::string& worker);
/// The worker.
result<std::string> lost_from(const event& e);

event problem_finished_event(const problem_view& view);

} // namespace gristmill
