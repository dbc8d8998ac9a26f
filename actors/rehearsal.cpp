#include "actors/rehearsal.hpp"

#include <nlohmann/json.hpp>

namespace gristmill {

oracle_actor::behavior_type rehearsal_oracle::make_behavior() {
  seam::end_on_exception(this);
  return {[](const prepare_request& request) {
            prepared_problem ready;
            ready.problem = request.problem;
            ready.status = verdict_status::passed;
            ready.has_bounds = true; // So that nobody measures a baseline.
            ready.reason = "a rehearsal has nothing to prepare";
            return ready;
          },
    [](const draw_over&) {}};
}

proposer_actor::behavior_type rehearsal_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {[](const propose_request& request) {
    proposal out;
    out.kind = proposal_kind::candidate;
    out.candidate.key = "sleep/" + std::to_string(request.work.id.ordinal);
    out.candidate.hash = out.candidate.key;
    out.candidate.hypothesis = "holds the GPU for a while";
    return out;
  }};
}

compiler_actor::behavior_type rehearsal_compiler::make_behavior() {
  seam::end_on_exception(this);
  return {[](const compile_request& request) {
    compiled_candidate out;
    out.candidate = request.candidate.hash;
    out.status = verdict_status::passed;
    out.toolchain = "none";
    return out;
  }};
}

rehearsal_scorer::rehearsal_scorer(caf::actor_config& actor, event_port events)
  : scorer_actor::base(actor), events_(std::move(events)) {}

scorer_actor::behavior_type rehearsal_scorer::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const judge_request& request) -> caf::result<verdict> {
      verdict v;
      v.status = verdict_status::passed;
      v.origin = time_origin::not_a_measurement;
      v.reason = "NOT A MEASUREMENT: no kernel ran";
      event e{.kind = "verdict",
        .problem = request.attempt.problem,
        .attempt = to_string(request.attempt),
        .candidate = request.candidate.hash,
        .token = request.measured.token,
        .reason = v.reason};
      e.data = nlohmann::json{{"kind", to_string(request.kind)}, {"key", request.candidate.key},
        {"status", to_string(v.status)}, {"origin", to_string(v.origin)}, {"objective_ns", 0},
        {"speedup", 0.0}, {"sol_score", 0.0}, {"floor_share", 0.0},
        {"workloads", nlohmann::json::array()}}
                 .dump();
      auto reply = make_response_promise<verdict>();
      events_.keep(this, std::move(e), [v, reply](const result<void>& stored) mutable {
        if (stored)
          reply.deliver(v);
        else
          reply.deliver(to_error(stored.error()));
      });
      return reply;
    },
    [](const refused_request&) -> caf::result<verdict> {
      return to_error({errc::unsupported, "a rehearsal compiles nothing"});
    },
    [](const prepared_problem&) {},
  };
}

} // namespace gristmill
