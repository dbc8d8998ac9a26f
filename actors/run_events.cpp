#include "actors/run_events.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

using nlohmann::json;

namespace {

/// The value of an enumeration that has this name; all values lie from 0 to `last`.
template <class T>
result<T> named(const json& data, const char* field, T last) {
  const auto& text = data.at(field).get_ref<const std::string&>();
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (to_string(static_cast<T>(i)) == text)
      return static_cast<T>(i);
  return fail(errc::invalid_input, fmt::format("{}: '{}' is unknown", field, text));
}

uint64_t whole(const json& data, const char* field) {
  const auto& value = data.at(field);
  if (!value.is_number_unsigned())
    throw json::type_error::create(
      302, std::string(field) + " must be a whole number of 0 or more", &value);
  return value.get<uint64_t>();
}

double finite(double value) {
  return std::isfinite(value) ? value : 0; // JSON has no other numbers.
}

/// Calls `read(data)`, and turns what a JSON library throws into a failure that names the event.
template <class T, class F>
result<T> from_data(const event& e, F read) {
  try {
    result<T> out = read(json::parse(e.data));
    if (!out)
      return fail(
        out.error().code, fmt::format("event {} ({}): {}", e.seq, e.kind, out.error().what));
    return out;
  } catch (const json::exception& error) {
    return fail(errc::invalid_input, fmt::format("event {} ({}): {}", e.seq, e.kind, error.what()));
  }
}

json times_of(const std::vector<workload_time>& times) {
  auto out = json::array();
  for (const auto& t : times)
    out.push_back({{"uuid", t.uuid}, {"ns", t.ns}});
  return out;
}

} // namespace

std::string text_of(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

result<attempt_id> attempt_id_from(const std::string& text) {
  auto second = text.rfind('/');
  auto first =
    second == std::string::npos || second == 0 ? std::string::npos : text.rfind('/', second - 1);
  attempt_id out;
  if (first != std::string::npos && first > 0) {
    out.problem = text.substr(0, first);
    out.language = text.substr(first + 1, second - first - 1);
    const char* end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data() + second + 1, end, out.ordinal);
    if (error == std::errc{} && at == end && !out.language.empty())
      return out;
  }
  return fail(errc::invalid_input, fmt::format("'{}' does not name an attempt", text));
}

void add_feedback(json& data, const blob_ref& feedback) {
  if (!feedback.sha256.empty())
    data["feedback"] = {{"sha256", feedback.sha256}, {"bytes", feedback.bytes}};
}

namespace {

blob_ref feedback_from(const json& data) {
  auto found = data.find("feedback");
  if (found == data.end())
    return {};
  return {found->at("sha256").get<std::string>(), whole(*found, "bytes")};
}

} // namespace

void add_candidate(json& data, const candidate_ref& candidate) {
  data["key"] = candidate.key;
  if (candidate.hash.empty())
    return;
  data["hypothesis"] = candidate.hypothesis;
  data["parent"] = candidate.parent;
  data["source"] = candidate.source.sha256;
  data["source_bytes"] = candidate.source.bytes;
  data["plan"] = candidate.plan.sha256;
  data["plan_bytes"] = candidate.plan.bytes;
}

candidate_ref candidate_from(const json& data, const std::string& hash) {
  candidate_ref out;
  out.key = data.at("key").get<std::string>();
  out.hash = hash;
  if (hash.empty())
    return out;
  out.hypothesis = data.at("hypothesis").get<std::string>();
  out.parent = data.at("parent").get<std::string>();
  out.source = {data.at("source").get<std::string>(), whole(data, "source_bytes")};
  out.plan = {data.at("plan").get<std::string>(), whole(data, "plan_bytes")};
  return out;
}

event prepared_event(const prepared_problem& prepared) {
  json data{{"status", to_string(prepared.status)}, {"graph", prepared.graph.sha256},
    {"graph_bytes", prepared.graph.bytes}, {"has_bounds", prepared.has_bounds}};
  auto& workloads = data["workloads"] = json::array();
  for (const auto& w : prepared.workloads)
    workloads.push_back({{"uuid", w.uuid}, {"floor_ns", w.floor_ns}, {"shrunken", w.shrunken},
      {"floor_method", w.floor_method}, {"sets", w.sets}, {"sets_note", w.sets_note}});
  return {.kind = "problem_prepared",
    .problem = prepared.problem,
    .reason = prepared.reason,
    .data = text_of(data)};
}

result<prepared_problem> prepared_from(const event& e) {
  return from_data<prepared_problem>(e, [&](const json& data) -> result<prepared_problem> {
    auto status = named(data, "status", verdict_status::infrastructure);
    if (!status)
      return pass(status);
    prepared_problem out;
    out.problem = e.problem;
    out.status = *status;
    out.graph = {data.at("graph").get<std::string>(), whole(data, "graph_bytes")};
    out.has_bounds = data.at("has_bounds").get<bool>();
    out.reason = e.reason;
    return out;
  });
}

event assigned_event(const planner_decision& decision, const std::string& worker) {
  json data{{"worker", worker}, {"kind", to_string(decision.work.kind)}};
  if (decision.work.given)
    data["given"] = decision.work.given->hash;
  return {.kind = "assigned",
    .problem = decision.work.id.problem,
    .attempt = to_string(decision.work.id),
    .reason = decision.reason,
    .data = text_of(data)};
}

result<assigned_fact> assigned_from(const event& e) {
  return from_data<assigned_fact>(e, [](const json& data) -> result<assigned_fact> {
    auto kind = named(data, "kind", attempt_kind::planted);
    if (!kind)
      return pass(kind);
    return assigned_fact{
      data.at("worker").get<std::string>(), *kind, data.value("given", std::string{})};
  });
}

event planted_event(const plant_request& request) {
  json data;
  add_candidate(data, request.candidate);
  return {.kind = "planted",
    .problem = request.problem,
    .candidate = request.candidate.hash,
    .reason = request.candidate.hypothesis,
    .data = text_of(data)};
}

result<candidate_ref> planted_from(const event& e) {
  return from_data<candidate_ref>(e,
    [&](const json& data) -> result<candidate_ref> { return candidate_from(data, e.candidate); });
}

event moved_event(const planner_decision& decision, const std::string& worker) {
  json data{{"worker", worker}, {"from", decision.work.moved_from}};
  if (!decision.note_left.empty())
    data["note"] = decision.note_left;
  return {.kind = "worker_moved",
    .problem = decision.work.id.problem,
    .attempt = to_string(decision.work.id),
    .reason = decision.reason,
    .data = text_of(data)};
}

event claimed_event(const claim_request& claim) {
  return {.kind = "claimed",
    .problem = claim.attempt.problem,
    .attempt = to_string(claim.attempt),
    .data = text_of({{"key", claim.key}})};
}

result<claim_request> claimed_from(const event& e) {
  return from_data<claim_request>(e, [&](const json& data) -> result<claim_request> {
    auto id = attempt_id_from(e.attempt);
    if (!id)
      return pass(id);
    return claim_request{*id, data.at("key").get<std::string>()};
  });
}

event finished_event(const attempt_summary& summary, const planner_note& note) {
  json data{{"kind", to_string(summary.kind)}, {"worker", summary.worker},
    {"outcome", to_string(summary.outcome)}, {"effort", to_string(summary.effort)},
    {"gpu_ns", summary.gpu_ns}, {"improved", note.improved}};
  add_candidate(data, summary.candidate);
  if (!note.rerun_of.empty())
    data["rerun_of"] = note.rerun_of;
  if (!summary.note.empty())
    data["note"] = summary.note;
  add_feedback(data, summary.feedback);
  if (summary.outcome == attempt_outcome::judged) {
    data["status"] = to_string(summary.status);
    data["objective_ns"] = summary.objective_ns;
    data["speedup"] = finite(summary.speedup);
    data["sol_score"] = finite(summary.sol_score);
    data["floor_share"] = finite(summary.floor_share);
    data["times"] = times_of(summary.times);
    if (summary.incumbent_stays)
      data["incumbent_stays"] = true;
  }
  return {.kind = "attempt_finished",
    .problem = summary.id.problem,
    .attempt = to_string(summary.id),
    .candidate = summary.candidate.hash,
    .reason = summary.reason,
    .data = text_of(data)};
}

namespace {

/// What verdicts and finished attempts have in common.
result<attempt_summary> judged_from(const event& e, const json& data) {
  auto id = attempt_id_from(e.attempt);
  if (!id)
    return pass(id);
  auto kind = named(data, "kind", attempt_kind::planted);
  if (!kind)
    return pass(kind);
  auto effort = named(data, "effort", attempt_effort::probe);
  if (!effort)
    return pass(effort);
  attempt_summary out;
  out.id = *id;
  out.kind = *kind;
  out.effort = *effort;
  out.candidate = candidate_from(data, e.candidate);
  out.reason = e.reason;
  out.feedback = feedback_from(data);
  return out;
}

result<void> take_status(attempt_summary& out, const json& data) {
  auto status = named(data, "status", verdict_status::infrastructure);
  if (!status)
    return pass(status);
  out.status = *status;
  out.objective_ns = whole(data, "objective_ns");
  out.speedup = data.at("speedup").get<double>();
  out.sol_score = data.at("sol_score").get<double>();
  out.floor_share = data.at("floor_share").get<double>();
  out.incumbent_stays = data.value("incumbent_stays", false);
  return {};
}

} // namespace

result<attempt_summary> finished_from(const event& e) {
  return from_data<attempt_summary>(e, [&](const json& data) -> result<attempt_summary> {
    auto out = judged_from(e, data);
    if (!out)
      return out;
    auto outcome = named(data, "outcome", attempt_outcome::unproposed);
    if (!outcome)
      return pass(outcome);
    out->outcome = *outcome;
    out->worker = data.at("worker").get<std::string>();
    out->gpu_ns = whole(data, "gpu_ns");
    out->note = data.value("note", std::string{});
    if (out->outcome == attempt_outcome::infrastructure)
      out->status = verdict_status::infrastructure;
    if (out->outcome != attempt_outcome::judged)
      return out;
    if (auto taken = take_status(*out, data); !taken)
      return pass(taken);
    for (const auto& t : data.at("times"))
      out->times.push_back({t.at("uuid").get<std::string>(), whole(t, "ns")});
    return out;
  });
}

result<attempt_summary> summary_of_verdict(const event& verdict) {
  return from_data<attempt_summary>(verdict, [&](const json& data) -> result<attempt_summary> {
    auto out = judged_from(verdict, data);
    if (!out)
      return out;
    out->outcome = attempt_outcome::judged;
    out->gpu_ns = whole(data, "held_ns");
    if (auto taken = take_status(*out, data); !taken)
      return pass(taken);
    if (out->status == verdict_status::passed)
      for (const auto& w : data.at("workloads"))
        if (auto ns = whole(w, "time_ns"); ns > 0)
          out->times.push_back({w.at("uuid").get<std::string>(), ns});
    return out;
  });
}

event lost_event(const attempt_id& id, const std::string& worker) {
  return {.kind = "attempt_lost",
    .problem = id.problem,
    .attempt = to_string(id),
    .reason = "its worker died",
    .data = text_of({{"worker", worker}})};
}

event compiled_event(const compile_request& of, const compiled_candidate& compiled) {
  event e{.kind = "compiled",
    .problem = of.attempt.problem,
    .attempt = to_string(of.attempt),
    .candidate = compiled.candidate,
    .reason = compiled.log.substr(0, compiled.log.find('\n'))};
  json data{{"status", to_string(compiled.status)}, {"cached", compiled.cached},
    {"units", compiled.units.size()}, {"toolchain", compiled.toolchain}};
  for (const auto& f : compiled.findings)
    data["findings"].push_back({{"rule", f.rule}, {"detail", f.detail}, {"fatal", f.fatal}});
  e.data = text_of(data);
  return e;
}

event interrupted_event(const attempt_id& id, const std::string& worker) {
  return {.kind = "attempt_interrupted",
    .problem = id.problem,
    .attempt = to_string(id),
    .reason = "the machine of its worker was lost",
    .data = text_of({{"gpu_ns", 0}, {"worker", worker}})};
}

result<std::string> lost_from(const event& e) {
  return from_data<std::string>(e,
    [](const json& data) -> result<std::string> { return data.at("worker").get<std::string>(); });
}

event problem_finished_event(const problem_view& view) {
  return {.kind = "problem_finished",
    .problem = view.name,
    .reason = view.reason,
    .data = text_of({{"best", view.best.hash}, {"best_ns", view.best_ns}})};
}

} // namespace gristmill
