#include "cli/stored_evidence.hpp"

#include "cli/read_run.hpp"
#include "cli/sanitizer_evidence.hpp"
#include "protocol/evidence.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

result<stored_verdict> verdict_of(const event& e) {
  stored_verdict out;
  out.seq = e.seq;
  out.kind = e.kind;
  out.attempt = e.attempt;
  out.candidate = e.candidate;
  out.reason = e.reason;
  try {
    const auto data = nlohmann::json::parse(e.data);
    out.status = data.at("status").get<std::string>();
    out.objective_ns = data.at("objective_ns").get<uint64_t>();
    for (const auto& each : data.value("findings", nlohmann::json::array()))
      out.findings.push_back(
        {each.at("rule"), each.at("workload"), each.at("detail"), each.at("fatal")});
    for (const auto& each : data.at("workloads"))
      if (each.value("needs_audit", false))
        out.need_audit.push_back(each.at("uuid"));
    out.evidence_sha256 = data.value("evidence", std::string());
  } catch (const nlohmann::json::exception& error) {
    return fail(errc::invalid_input,
      fmt::format("event {} ({}) is not what its kind promises: {}", e.seq, e.kind, error.what()));
  }
  return out;
}

} // namespace

result<stored_verdicts> read_verdicts(const std::filesystem::path& run) {
  auto directory = open_run(run);
  if (!directory)
    return pass(directory);
  auto events = read_events(run);
  if (!events)
    return pass(events);
  auto blobs = blob_store::open(directory->blobs());
  if (!blobs)
    return pass(blobs);
  auto records = read_records(directory->root());
  if (!records)
    return pass(records);
  stored_verdicts out{{}, std::move(*blobs), std::move(*records)};
  for (const auto& e : *events) {
    if (e.kind != "verdict" && e.kind != "probe_verdict" && e.kind != "no_verdict")
      continue;
    auto one = verdict_of(e);
    if (!one)
      return fail(one.error().code, run.string() + ": " + one.error().what);
    out.all.push_back(std::move(*one));
  }
  return out;
}

result<evidence> read_evidence(const blob_store& blobs, const stored_verdict& of) {
  auto text = stored_text(blobs, of.evidence_sha256);
  if (!text)
    return pass(text);
  auto read = evidence_from_json(*text);
  if (!read)
    return fail(read.error().code,
      fmt::format("evidence of {} ({}): {}", of.attempt, of.evidence_sha256, read.error().what));
  return read;
}

} // namespace gristmill
