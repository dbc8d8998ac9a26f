// What the planner does for those outside who hand candidates to the run.

#include "actors/planner.hpp"

#include "actors/run_events.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

caf::result<plant_reply> planner::plant(const plant_request& request) {
  if (plants_.size() >= config_.planters_max)
    return to_error({errc::queue_full,
      fmt::format("{} candidates from outside wait for their verdict", plants_.size())});
  auto note = mind_.plant(request.problem, request.candidate, now());
  plant_reply refused{plant_kind::refused, {}, {}, note.reason};
  if (note.known) {
    refused.kind = plant_kind::known;
    refused.earlier = note.earlier;
    refused.reason = "it was tried before";
  }
  if (!note.accepted)
    return refused;
  config_.events.note(this, planted_event(request));
  auto reply = make_response_promise<plant_reply>();
  plants_.push_back({request, {}, reply});
  serve();
  return reply;
}

void planner::withdraw(const plant_withdrawal& what) {
  if (!mind_.withdraw(what.problem, what.candidate))
    return;
  config_.events.note(this,
    {.kind = "plant_withdrawn",
      .problem = what.problem,
      .candidate = what.candidate,
      .reason = what.reason});
  serve();
}

void planner::close_planting(const plant_close& what) {
  mind_.close_planting();
  config_.events.note(this, {.kind = "planting_closed", .reason = what.reason});
  serve();
}

void planner::remember_for_planter(const attempt_summary& summary) {
  for (auto& p : plants_)
    if (p.request.problem == summary.id.problem
      && p.request.candidate.hash == summary.candidate.hash)
      p.last = summary;
}

std::string planner::why_not(const std::string& problem) const {
  for (const auto& p : mind_.problems())
    if (p.name == problem && p.state == problem_state::finished)
      return fmt::format("problem '{}' is finished: {}", problem, p.reason);
  return mind_.stop_reason().empty() ? "it was withdrawn" : mind_.stop_reason();
}

void planner::answer_planters() {
  std::erase_if(plants_, [this](waiting_plant& p) {
    if (mind_.has_open(p.request.problem, p.request.candidate))
      return false;
    plant_reply out;
    if (p.last && p.last->outcome != attempt_outcome::abandoned) {
      out.kind = plant_kind::over;
      out.summary = *p.last;
    } else {
      out.reason = "it is not tried: " + why_not(p.request.problem);
    }
    p.reply.deliver(std::move(out));
    return true;
  });
}

} // namespace gristmill
