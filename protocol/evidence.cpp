#include "protocol/evidence.hpp"

#include "protocol/child_answers.hpp"
#include "protocol/job.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace gristmill {

namespace {

constexpr std::string_view schema = "gristmill.evidence/1";
constexpr size_t text_bytes = size_t{1} << 20;
constexpr size_t findings_max = 10'000;

template <class E>
std::vector<std::string> names_up_to(E last) {
  std::vector<std::string> out;
  for (int i = 0; i <= static_cast<int>(last); ++i)
    out.push_back(to_string(static_cast<E>(i)));
  return out;
}

template <class E>
E read_choice(strict_object& object, std::string_view key, E last) {
  return static_cast<E>(object.choice(key, names_up_to(last)));
}

ordered_json write(const blob_ref& ref) {
  return {{"sha256", ref.sha256}, {"bytes", ref.bytes}};
}

ordered_json write(const candidate_ref& what) {
  return {{"hash", what.hash}, {"source", write(what.source)}, {"plan", write(what.plan)},
    {"key", what.key}, {"parent", what.parent}, {"hypothesis", what.hypothesis}};
}

template <class T>
ordered_json write_all(const std::vector<T>& list) {
  auto out = ordered_json::array();
  for (const auto& each : list)
    out.push_back(to_json(each));
  return out;
}

ordered_json write(const measurement& what) {
  return {{"gpu", what.gpu}, {"token", what.token}, {"part", what.part}, {"device", what.device},
    {"origin", to_string(what.origin)}, {"workloads", write_all(what.workloads)},
    {"findings", write_all(what.findings)}, {"held_ns", what.held.count()},
    {"failure", what.failure_text}};
}

ordered_json write(const workload_yardstick& what) {
  return {{"workload", what.uuid}, {"baseline_ns", what.baseline_ns},
    {"baseline_origin", to_string(what.baseline_origin)}, {"floor_ns", what.floor_ns},
    {"physical_ns", what.physical_ns}};
}

blob_ref read_ref(strict_object& object, std::string_view key) {
  blob_ref out;
  object.object(key, [&](strict_object& inner) {
    out.sha256 = inner.text("sha256", 64);
    out.bytes = inner.natural("bytes");
  });
  return out;
}

candidate_ref read_candidate(strict_object& object, std::string_view key) {
  candidate_ref out;
  object.object(key, [&](strict_object& inner) {
    out.hash = inner.text("hash", 64);
    out.source = read_ref(inner, "source");
    out.plan = read_ref(inner, "plan");
    out.key = inner.text("key", text_bytes);
    out.parent = inner.text("parent", 64);
    out.hypothesis = inner.text("hypothesis", text_bytes);
  });
  return out;
}

std::vector<finding> read_findings(strict_object& object, std::string_view key) {
  std::vector<finding> out;
  object.each(key, findings_max, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    out.push_back(read_finding(inner));
  });
  return out;
}

measurement read_whole_measurement(strict_object& object) {
  measurement out;
  out.gpu = object.natural32("gpu");
  out.token = object.natural("token");
  out.part = object.natural32("part");
  out.device = object.text("device", text_bytes);
  out.origin = read_choice(object, "origin", time_origin::not_a_measurement);
  object.each(
    "workloads", job_limits::workloads, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), object.sink()};
      out.workloads.push_back(read_measurement(inner));
    });
  out.findings = read_findings(object, "findings");
  out.held = std::chrono::nanoseconds{object.integer("held_ns")};
  out.failure_text = object.text("failure", text_bytes);
  return out;
}

workload_yardstick read_yardstick(strict_object& object) {
  workload_yardstick out;
  out.uuid = object.text("workload", text_bytes);
  out.baseline_ns = object.natural("baseline_ns");
  out.baseline_origin = read_choice(object, "baseline_origin", time_origin::not_a_measurement);
  out.floor_ns = object.natural("floor_ns");
  out.physical_ns = object.natural("physical_ns");
  return out;
}

void read_body(strict_object& object, evidence& out) {
  object.choice("schema", {std::string(schema)});
  object.object("attempt", [&](strict_object& inner) {
    out.attempt.problem = inner.text("problem", text_bytes);
    out.attempt.language = inner.text("language", 256);
    out.attempt.ordinal = inner.natural32("ordinal");
  });
  out.kind = read_choice(object, "kind", attempt_kind::planted);
  out.effort = read_choice(object, "effort", attempt_effort::probe);
  out.purpose = read_choice(object, "purpose", measure_purpose::promotion);
  out.candidate = read_candidate(object, "candidate");
  out.against = read_candidate(object, "against");
  out.toolchain = object.text("toolchain", text_bytes);
  out.device = object.text("device", text_bytes);
  object.object(
    "measured", [&](strict_object& inner) { out.measured = read_whole_measurement(inner); });
  out.measured.attempt = out.attempt;
  object.each("judged", job_limits::workloads, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    out.judged.workloads.push_back(read_evaluation(inner));
  });
  object.each(
    "yardsticks", job_limits::workloads, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), object.sink()};
      out.yardsticks.push_back(read_yardstick(inner));
    });
  object.each("outputs", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    auto name = inner.text("output", text_bytes);
    auto type = inner.text("type", 64);
    out.outputs.push_back({std::move(name), std::move(type)});
  });
  out.narrowest_input_bits = object.natural32("narrowest_input_bits", 64);
  out.domain = object.text("domain", text_bytes);
  out.compiled = read_findings(object, "compiled");
  out.attempts = object.natural32("attempts");
  out.retrials = object.natural32("retrials");
}

} // namespace

result<std::string> to_json(const evidence& what) {
  ordered_json out{{"schema", schema},
    {"attempt",
      {{"problem", what.attempt.problem}, {"language", what.attempt.language},
        {"ordinal", what.attempt.ordinal}}},
    {"kind", to_string(what.kind)}, {"effort", to_string(what.effort)},
    {"purpose", to_string(what.purpose)}, {"candidate", write(what.candidate)},
    {"against", write(what.against)}, {"toolchain", what.toolchain}, {"device", what.device},
    {"measured", write(what.measured)}, {"judged", write_all(what.judged.workloads)}};
  auto& yardsticks = out["yardsticks"] = ordered_json::array();
  for (const auto& each : what.yardsticks)
    yardsticks.push_back(write(each));
  auto& outputs = out["outputs"] = ordered_json::array();
  for (const auto& each : what.outputs)
    outputs.push_back({{"output", each.output}, {"type", each.type}});
  out["narrowest_input_bits"] = what.narrowest_input_bits;
  out["domain"] = what.domain;
  out["compiled"] = write_all(what.compiled);
  out["attempts"] = what.attempts;
  out["retrials"] = what.retrials;
  auto text = out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (text.size() > evidence_bytes_max)
    return fail(errc::refused,
      fmt::format("the evidence of {} has {} bytes, more than {}", to_string(what.attempt),
        text.size(), evidence_bytes_max));
  return text;
}

result<evidence> evidence_from_json(std::string_view text) {
  json_limits limits;
  limits.bytes = evidence_bytes_max;
  limits.unique_keys = true;
  auto value = parse_json_object(text, "evidence", limits);
  if (!value)
    return pass(value);
  evidence out;
  std::optional<failure> sink;
  {
    strict_object object{*value, "evidence", sink};
    read_body(object, out);
  }
  if (sink)
    return tl::unexpected(std::move(*sink));
  return out;
}

} // namespace gristmill
