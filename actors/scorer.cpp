#include "actors/scorer.hpp"

#include "actors/judge.hpp"
#include "actors/run_events.hpp"
#include "actors/verdict_evidence.hpp"
#include "actors/verdict_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

/// "launch" when the launch cost is half of the time or more, else the model's own bound.
std::string bound_of(const workload_measurement& w) {
  for (const auto& term : w.terms)
    if (term.name == "launch" && 2 * double(term.ns) >= double(w.time_ns))
      return "launch";
  return w.bound;
}

/// The largest errors over the outputs of a workload; what is not finite is left out.
void add_errors(nlohmann::json& row, const evaluation& judged, const std::string& uuid) {
  for (const auto& w : judged.workloads) {
    if (w.uuid != uuid || w.outputs.empty())
      continue;
    double absolute = 0;
    double relative = 0;
    for (const auto& o : w.outputs) {
      absolute = std::max(absolute, double(o.max_absolute_error));
      relative = std::max(relative, double(o.max_relative_error));
    }
    if (std::isfinite(absolute) && std::isfinite(relative)) {
      row["max_absolute_error"] = absolute;
      row["max_relative_error"] = relative;
    }
    if (w.shrunken)
      row["shrunken"] = true;
  }
}

/// How many calls were compared, where that is more than the check itself, and which of them the
/// errors are of.
void add_calls(nlohmann::json& row, const evaluation& judged, const std::string& uuid) {
  for (const auto& w : judged.workloads)
    if (w.uuid == uuid && w.calls > 1) {
      row["calls"] = w.calls;
      row["call"] = w.call;
    }
}

nlohmann::json data_of(attempt_kind kind, attempt_effort effort, const candidate_ref& candidate,
  const measurement& measured, const verdict& v, const evaluation& judged) {
  nlohmann::json data{{"kind", to_string(kind)}, {"effort", to_string(effort)},
    {"status", to_string(v.status)}, {"origin", to_string(v.origin)},
    {"held_ns", static_cast<uint64_t>(std::max<int64_t>(measured.held.count(), 0))},
    {"objective_ns", v.objective_ns}, {"speedup", double(v.speedup)},
    {"sol_score", double(v.sol_score)}, {"floor_share", double(v.floor_share)},
    {"device", measured.device}};
  add_candidate(data, candidate);
  auto& workloads = data["workloads"] = nlohmann::json::array();
  for (const auto& w : v.workloads) {
    nlohmann::json row{{"uuid", w.uuid}, {"status", to_string(w.status)}, {"time_ns", w.time_ns},
      {"baseline_ns", w.baseline_ns}, {"floor_ns", w.floor_ns}, {"speedup", double(w.speedup)},
      {"sol_score", double(w.sol_score)}};
    add_errors(row, judged, w.uuid);
    add_calls(row, judged, w.uuid);
    if (w.needs_audit)
      row["needs_audit"] = true;
    if (!w.detail.empty())
      row["detail"] = w.detail;
    for (const auto& m : measured.workloads)
      if (m.uuid == w.uuid && m.time_ns != 0)
        row["bound"] = bound_of(m);
    workloads.push_back(std::move(row));
  }
  add_feedback(data, v.feedback);
  for (const auto& f : v.findings)
    data["findings"].push_back(
      {{"rule", f.rule}, {"workload", f.workload}, {"detail", f.detail}, {"fatal", f.fatal}});
  return data;
}

/// What only the verdict on a promotion has.
void add_promotion(
  nlohmann::json& data, const judge_request& of, const verdict& v, const std::string& compared) {
  data["promotion"] = true;
  data["incumbent_stays"] = v.incumbent_stays;
  if (v.incumbent)
    data["incumbent"] = v.incumbent->hash;
  if (!compared.empty())
    data["compared"] = compared;
  for (auto& row : data["workloads"])
    for (const auto& measured : of.measured.workloads)
      if (measured.uuid == row["uuid"])
        for (const auto& block : measured.blocks)
          row["blocks"].push_back({{"rival", block.rival}, {"median_ns", block.median_ns},
            {"mad_ns", block.mad_ns}, {"samples", block.samples}});
}

/// A second verdict on one candidate would count twice.
const failure given_up{
  errc::node_lost, "the machine of its worker was lost, and the attempt was given out again"};

} // namespace

scorer::scorer(caf::actor_config& actor, scorer_config config)
  : scorer_actor::base(actor), config_(std::move(config)), baselines_(std::move(config_.baselines)),
    best_(std::move(config_.best)) {}

void scorer::on_exit() {
  config_.judge = nullptr;
  config_.events.close();
}

scorer_actor::behavior_type scorer::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const judge_request& request) { return judge(request); },
    [this](const refused_request& request) -> caf::result<verdict> {
      auto reply = make_response_promise<verdict>();
      auto v = refused_verdict(yardsticks(request.attempt.problem, {}), request.compiled);
      add_feedback_of_refusal(*config_.context, request.candidate, request.compiled, v);
      keep({request.attempt, request.kind, request.candidate, request.effort, {}, {}, {}, {}, {}},
        std::move(v), {}, {}, reply);
      return reply;
    },
    [this](const prepared_problem& prepared) {
      prepared_[prepared.problem] = prepared;
      if (!prepared.has_bounds || !config_.context->bounds)
        return;
      for (const auto& w : prepared.workloads)
        if (const auto* found = config_.context->bounds->find(prepared.problem, w.uuid))
          baselines_[prepared.problem][w.uuid] = {w.uuid,
            static_cast<uint64_t>(std::llround(std::ceil(found->t_b_ns))),
            config_.context->measured ? time_origin::measured : time_origin::modelled, w.floor_ns,
            0};
    },
  };
}

std::vector<workload_yardstick> scorer::yardsticks(
  const std::string& problem, const std::vector<std::string>& only) const {
  std::vector<workload_yardstick> out;
  auto known = baselines_.find(problem);
  auto prepared = prepared_.find(problem);
  if (prepared == prepared_.end())
    return out;
  for (const auto& w : prepared->second.workloads) {
    if (!only.empty() && std::find(only.begin(), only.end(), w.uuid) == only.end())
      continue; // A probe: what it did not ask for is no part of its verdict.
    workload_yardstick y;
    if (known != baselines_.end())
      if (auto found = known->second.find(w.uuid); found != known->second.end())
        y = found->second;
    y.uuid = w.uuid;
    y.floor_ns = w.floor_ns;
    y.physical_ns = physical_floor_of(*config_.context, problem, w.uuid);
    out.push_back(y);
  }
  return out;
}

caf::result<verdict> scorer::judge(const judge_request& request) {
  const auto& measured = request.measured;
  // 0 is no token, whatever the part.
  auto& fence =
    fences_.try_emplace(measured.gpu, 0, std::numeric_limits<uint32_t>::max()).first->second;
  std::pair<uint64_t, uint32_t> at{measured.token, measured.part};
  if (at <= fence) {
    if (at < fence)
      remove_outputs(
        *config_.context, measured); // Of the same part they may be those that are being judged.
    return to_error({errc::lease_expired,
      "a measurement of GPU " + std::to_string(measured.gpu) + " under token "
        + std::to_string(at.first) + ", part " + std::to_string(at.second) + ", is too late: token "
        + std::to_string(fence.first) + ", part " + std::to_string(fence.second)
        + " has been seen"});
  }
  fence = at;
  auto reply = make_response_promise<verdict>();
  const bool any = std::any_of(measured.workloads.begin(), measured.workloads.end(),
    [](const workload_measurement& w) { return w.status == verdict_status::passed; });
  if (!any) { // Nothing ran to its end: nothing to compare, and no machine to ask.
    remove_outputs(*config_.context, measured);
    decide(request, {}, reply);
    return reply;
  }
  seam::ask(this, config_.judge, request)
    .then([this, request, reply](const evaluation& judged) { decide(request, judged, reply); },
      [reply](const caf::error& error) mutable { reply.deliver(error); });
  return reply;
}

void scorer::decide(const judge_request& request, const evaluation& judged, verdict_promise reply) {
  if (config_.book && config_.book->is_given_up(to_string(request.attempt))) {
    reply.deliver(to_error(given_up));
    return;
  }
  const auto& problem = request.attempt.problem;
  const bool full = request.effort == attempt_effort::full && request.workloads.empty();
  const auto tried =
    best_.of(request.attempt).tried + (request.purpose == measure_purpose::screen ? 1 : 0);
  const auto all =
    evidence_of(*config_.context, request, judged, yardsticks(problem, request.workloads), tried,
      static_cast<uint32_t>(tried_again_.count(request.attempt)));
  auto decided = gristmill::decide(all);
  if (decided.retrial && tried_again_.insert(request.attempt).second) {
    note_retrial(request, decided);
    reply.deliver(to_error({errc::lease_expired, "measured once more, on a suspicion"}));
    return;
  }
  tried_again_.erase(request.attempt);
  auto v = std::move(decided.decided);
  v.evidence = store_evidence(*config_.context, all);
  if (request.kind == attempt_kind::baseline && full && v.status == verdict_status::passed)
    for (const auto& w : v.workloads)
      baselines_[problem][w.uuid] = {w.uuid, w.time_ns, v.origin, w.floor_ns, 0};
  std::string compared;
  if (full && v.status == verdict_status::passed && v.objective_ns > 0)
    compared = best_.weigh(request, config_.context->promote, v);
  if (!v.wants_promotion)
    add_feedback_of_verdict(*config_.context, problem, request.measured, judged, v);
  keep(request, std::move(v), judged, compared, reply);
}

void scorer::note_retrial(const judge_request& of, const decision& why) {
  nlohmann::json data{{"rules", nlohmann::json::array()}};
  for (const auto& one : why.accounts)
    if (one.fired && one.level == rule_level::suspicion)
      data["rules"].push_back(
        {{"rule", std::string(one.rule)}, {"workload", one.workload}, {"said", one.said}});
  config_.events.note(this,
    {.kind = "retrial",
      .problem = of.attempt.problem,
      .attempt = to_string(of.attempt),
      .candidate = of.candidate.hash,
      .token = of.measured.token,
      .reason = "a suspicion: measured once more",
      .data = text_of(data)});
}

void scorer::keep(const judge_request& of, verdict v, const evaluation& judged,
  const std::string& compared, verdict_promise reply) {
  event e{.kind = "verdict",
    .problem = of.attempt.problem,
    .attempt = to_string(of.attempt),
    .candidate = of.candidate.hash,
    .token = of.measured.token,
    .reason = v.reason};
  auto data = data_of(of.kind, of.effort, of.candidate, of.measured, v, judged);
  if (!config_.context->program.empty())
    data["program"] = config_.context->program;
  if (!v.evidence.sha256.empty())
    data["evidence"] = v.evidence.sha256;
  if (of.purpose == measure_purpose::promotion)
    add_promotion(data, of, v, compared);
  else if (v.incumbent)
    data["incumbent"] = v.incumbent->hash;
  e.data = text_of(data);
  if (v.status == verdict_status::infrastructure)
    e.kind = "no_verdict"; // What the house broke is nobody's verdict.
  else if (v.wants_promotion)
    e.kind = "screened"; // Its promotion will have the verdict.
  else if (of.effort != attempt_effort::full || !of.workloads.empty())
    e.kind = "probe_verdict"; // Of some workloads: none on the problem.
  const bool final = e.kind == "verdict" || e.kind == "probe_verdict";
  if (config_.book && final && !config_.book->decided(e)) {
    reply.deliver(to_error(given_up));
    return;
  }
  config_.events.keep(this, std::move(e), [v, reply](const result<void>& stored) mutable {
    if (stored)
      reply.deliver(v);
    else
      reply.deliver(to_error(stored.error()));
  });
}

} // namespace gristmill
