#include "scoring/verdict.hpp"

#include "scoring/score.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace gristmill {

namespace {

// First entry of each workload, by uuid. A second one is a mistake of ours or an attempt to choose.
template <class T>
std::map<std::string, const T*> by_uuid(const std::vector<T>& list, bool& twice) {
  std::map<std::string, const T*> out;
  for (const auto& x : list)
    twice |= !out.emplace(x.uuid, &x).second;
  return out;
}

void set_status(workload_verdict& w, verdict_status status, std::string detail) {
  w.status = status;
  w.detail = std::move(detail);
}

// What the runner and the judge say about one workload, without times.
void decide(workload_verdict& w, const workload_measurement* measured,
  const workload_evaluation* judged, const rules_off& off, std::vector<finding>& findings) {
  if (measured == nullptr)
    return set_status(w, verdict_status::infrastructure, "missing from the measurement");
  if (measured->status == verdict_status::reward_hack && !off.contains("writes_input"))
    findings.push_back({"writes_input", w.uuid, measured->detail, true});
  if (measured->status != verdict_status::passed)
    return set_status(w, measured->status, measured->detail);
  if (judged == nullptr)
    return set_status(w, verdict_status::not_checked, "no correctness run covered this workload");
  const bool is_blind =
    judged->status != verdict_status::passed && off.contains(wrong_rule(judged->call));
  if (judged->status != verdict_status::passed && !is_blind)
    return set_status(w, judged->status, judged->detail);
  // "Right" with nothing compared, or with a wrong output, is not right.
  if (judged->outputs.empty())
    return set_status(w, verdict_status::not_checked, "no output was compared");
  for (const auto& o : judged->outputs)
    if (!o.passed && !is_blind)
      return set_status(w, verdict_status::incorrect_numerical,
        fmt::format("output '{}' does not match its reference", o.output));
  if (measured->time_ns == 0)
    return set_status(w, verdict_status::infrastructure, "measured, but without a time");
  w.status = verdict_status::passed;
  // A judge that passes an output and still has something to say warns.
  if (!judged->detail.empty() && !is_blind)
    findings.push_back({"judge_warning", w.uuid, judged->detail, false});
}

void score(workload_verdict& w, const workload_yardstick& bounds, attempt_kind kind,
  time_origin origin, const rules_off& off, std::vector<finding>& findings) {
  if (w.status != verdict_status::passed)
    return;
  w.baseline_ns = kind == attempt_kind::baseline ? w.time_ns : bounds.baseline_ns;
  if (kind != attempt_kind::baseline && bounds.baseline_ns > 0
    && bounds.baseline_origin != origin) {
    findings.push_back({"other_origin", w.uuid,
      fmt::format("the baseline is {}, this time is {}: not comparable",
        to_string(bounds.baseline_origin), to_string(origin)),
      false});
    w.baseline_ns = 0;
  }
  if (w.floor_ns > 0 && w.time_ns < w.floor_ns && !off.contains("below_floor")) {
    w.needs_audit = true;
    // The rules may have said it already.
    const bool is_said = std::any_of(findings.begin(), findings.end(),
      [&](const finding& f) { return f.rule == "below_floor" && f.workload == w.uuid; });
    if (!is_said)
      findings.push_back({"below_floor", w.uuid,
        fmt::format("{} ns is less than the floor of {} ns", w.time_ns, w.floor_ns), false});
  }
  if (w.baseline_ns == 0)
    return;
  w.speedup = static_cast<double>(w.baseline_ns) / static_cast<double>(w.time_ns);
  if (w.floor_ns == 0)
    return;
  auto value = sol_score(static_cast<double>(w.time_ns), static_cast<double>(w.baseline_ns),
    static_cast<double>(w.floor_ns));
  if (value)
    w.sol_score = value->value;
}

void apply_fatal(std::vector<workload_verdict>& workloads, const std::vector<finding>& findings) {
  for (const auto& f : findings) {
    if (!f.fatal)
      continue;
    bool named = std::any_of(
      workloads.begin(), workloads.end(), [&](const auto& w) { return w.uuid == f.workload; });
    for (auto& w : workloads)
      // What names no workload of the problem is about the candidate.
      if (!named || w.uuid == f.workload) {
        w.status = verdict_status::reward_hack;
        w.detail = f.rule + ": " + f.detail;
        w.speedup = 0;
        w.sol_score = 0;
      }
  }
}

// What is not explained counts nothing until a person has looked.
void apply_suspicions(
  std::vector<workload_verdict>& workloads, const std::vector<finding>& findings) {
  for (const auto& f : findings) {
    const auto* rule = find_rule(f.rule);
    if (rule == nullptr)
      continue;
    const bool named = std::any_of(
      workloads.begin(), workloads.end(), [&](const auto& w) { return w.uuid == f.workload; });
    for (auto& w : workloads) {
      if ((named && w.uuid != f.workload) || w.status != verdict_status::passed)
        continue;
      if (rule->level == rule_level::suspicion) {
        w.needs_audit = true;
        w.detail = f.rule + ": " + f.detail;
        if (f.rule != "below_floor")
          w.speedup = 0;
        w.sol_score = 0;
      } else if (f.rule == "sanitizer") {
        set_status(w, verdict_status::runtime_error, f.rule + ": " + f.detail);
      }
    }
  }
}

// Status and reason of the whole, from the first workload that is not PASSED.
void conclude(verdict& v) {
  if (v.workloads.empty()) {
    v.status = verdict_status::not_checked;
    v.reason = "the problem has no workloads";
    return;
  }
  size_t failed = 0;
  const workload_verdict* first = nullptr;
  for (const auto& w : v.workloads)
    if (w.status != verdict_status::passed && failed++ == 0)
      first = &w;
  if (first == nullptr) {
    v.status = verdict_status::passed;
    return;
  }
  v.status = first->status;
  v.reason = fmt::format("{} on workload {} ({} of {} not passed){}{}", to_string(first->status),
    first->uuid, failed, v.workloads.size(), first->detail.empty() ? "" : ": ", first->detail);
}

void summarise_times(verdict& v) {
  std::vector<double> times;
  std::vector<double> speedups;
  std::vector<double> shares;
  for (const auto& w : v.workloads) {
    if (w.needs_audit) {
      v.reason = w.floor_ns > 0 && w.time_ns < w.floor_ns
        ? fmt::format("needs an audit: workload {} took {} ns, below its floor of {} ns", w.uuid,
          w.time_ns, w.floor_ns)
        : fmt::format("needs an audit: workload {}, {}", w.uuid, w.detail);
      return;
    }
    times.push_back(static_cast<double>(w.time_ns));
    if (w.speedup > 0)
      speedups.push_back(w.speedup);
    if (w.floor_ns > 0)
      shares.push_back(static_cast<double>(w.floor_ns) / static_cast<double>(w.time_ns));
  }
  v.objective_ns = static_cast<uint64_t>(std::max<long long>(std::llround(*geomean(times)), 1));
  if (speedups.size() == v.workloads.size())
    v.speedup = *geomean(speedups);
  if (shares.size() == v.workloads.size())
    v.floor_share = *geomean(shares);
}

void average_scores(verdict& v) {
  double sum = 0;
  for (const auto& w : v.workloads)
    sum += w.sol_score;
  v.sol_score = v.workloads.empty() ? 0.0 : sum / static_cast<double>(v.workloads.size());
}

verdict assemble(attempt_kind kind, std::span<const workload_yardstick> workloads,
  const measurement& measured, const evaluation& judged, std::vector<finding> extra,
  const rules_off& off) {
  verdict v;
  v.origin = measured.origin;
  v.findings = std::move(extra);
  bool twice = false;
  auto measurements = by_uuid(measured.workloads, twice);
  auto evaluations = by_uuid(judged.workloads, twice);
  if (twice)
    v.findings.push_back({"reported_twice", "",
      "a workload was reported more than once; the first report counts", false});
  for (const auto& bounds : workloads) {
    workload_verdict w;
    w.uuid = bounds.uuid;
    w.floor_ns = bounds.floor_ns;
    auto m = measurements.find(bounds.uuid);
    auto e = evaluations.find(bounds.uuid);
    const auto* one = m == measurements.end() ? nullptr : m->second;
    w.time_ns = one == nullptr ? 0 : one->time_ns;
    decide(w, one, e == evaluations.end() ? nullptr : e->second, off, v.findings);
    score(w, bounds, kind, measured.origin, off, v.findings);
    v.workloads.push_back(std::move(w));
  }
  apply_fatal(v.workloads, v.findings);
  apply_suspicions(v.workloads, v.findings);
  conclude(v);
  average_scores(v);
  if (v.status == verdict_status::passed)
    summarise_times(v);
  return v;
}

} // namespace

verdict make_verdict(attempt_kind kind, std::span<const workload_yardstick> workloads,
  const measurement& measured, const evaluation& judged, std::vector<finding> extra) {
  return assemble(kind, workloads, measured, judged, std::move(extra), {});
}

decision decide(const evidence& of, const rules_off& off) {
  auto seen = examine(of, off);
  decision out;
  out.decided =
    assemble(of.kind, of.yardsticks, of.measured, of.judged, std::move(seen.findings), off);
  // A candidate that is refused anyway need not run again.
  out.retrial = seen.retrial && out.decided.status == verdict_status::passed;
  out.accounts = std::move(seen.accounts);
  return out;
}

verdict refused_verdict(
  std::span<const workload_yardstick> workloads, const compiled_candidate& compiled) {
  verdict v;
  auto status = compiled.status;
  // Asked about a candidate that compiled, the only honest answer is that something of ours is
  // wrong.
  if (status == verdict_status::passed || status == verdict_status::not_checked)
    status = verdict_status::infrastructure;
  if (status == verdict_status::reward_hack)
    v.findings.push_back({"unexpected_entry", "", compiled.log, true});
  for (const auto& bounds : workloads) {
    workload_verdict w;
    w.uuid = bounds.uuid;
    w.status = status;
    w.floor_ns = bounds.floor_ns;
    v.workloads.push_back(std::move(w));
  }
  v.status = status;
  v.reason =
    fmt::format("{}: {}", to_string(status), compiled.log.substr(0, compiled.log.find('\n')));
  return v;
}

} // namespace gristmill
