#include "report/export_run.hpp"
#include "scoring/suite.hpp"

#include <algorithm>
#include <fmt/format.h>

// The two tables of an export.
namespace gristmill {

namespace {

/// A field of a CSV file (RFC 4180).
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? std::string{"\"\""} : std::string(1, c);
  return out + "\"";
}

/// Empty for "none".
std::string milliseconds(uint64_t ns) {
  return ns == 0 ? "" : fmt::format("{}", static_cast<double>(ns) / 1e6);
}

timed_problem timed(const winner& best) {
  timed_problem out{best.definition_name, "", {}};
  for (const auto& w : best.workloads)
    out.workloads.push_back({w.uuid, w.status, w.status == "PASSED", static_cast<double>(w.time_ns),
      static_cast<double>(w.baseline_ns), static_cast<double>(w.floor_ns), false});
  return out;
}

} // namespace

std::string combined_metrics(const run_winners& run) {
  std::string out =
    "problem,workload,status,candidate,device,origin,baseline_ms,sol_ms,latency_ms,speedup,"
    "sol_score,needs_audit\n";
  for (const auto& best : run.problems) {
    if (best.hash.empty() && best.workloads.empty())
      out += fmt::format("{},,no candidate,,,,,,,,0,\n", field(best.definition_name));
    for (const auto& w : best.workloads)
      out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", field(best.definition_name),
        field(w.uuid), field(w.status), field(best.hash), field(best.device), field(best.origin),
        milliseconds(w.baseline_ns), milliseconds(w.floor_ns), milliseconds(w.time_ns),
        w.speedup > 0 ? fmt::format("{}", w.speedup) : "", w.sol_score, w.needs_audit);
  }
  return out;
}

result<std::string> problem_metrics(const run_winners& run) {
  std::string out =
    "problem,status,candidate,kind,device,origin,workloads,passed,needs_audit,score_mean,"
    "score_median,speedup_geomean,speedup_mean,faster,latency_geomean_ms\n";
  for (const auto& best : run.problems) {
    if (best.hash.empty()) {
      out += fmt::format("{},no candidate,,,,,{},0,0,0,0,1,1,0,\n", field(best.definition_name),
        best.workloads.size());
      continue;
    }
    const auto begin =
      fmt::format("{},PASSED,{},{},{},{},{}", field(best.definition_name), field(best.hash),
        field(best.kind), field(best.device), field(best.origin), best.workloads.size());
    const bool is_whole = std::all_of(best.workloads.begin(), best.workloads.end(),
      [](const logged_workload& w) { return w.floor_ns > 0 && w.baseline_ns > 0; });
    if (!is_whole) { // Without T_b and T_SOL there is no score, and that is not a score of 0.
      out += fmt::format("{},{},,,,,,,\n", begin, best.workloads.size());
      continue;
    }
    auto scored = score_suite({timed(best)});
    if (!scored)
      return pass(scored);
    const auto& p = scored->problems.front();
    out += fmt::format("{},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{},{:.9g}\n", begin, p.passed,
      p.need_audit, p.score_mean, p.score_median, p.speedup_geomean, p.speedup_mean, p.faster,
      p.latency_geomean / 1e6);
  }
  return out;
}

} // namespace gristmill
