#include "report/run_page.hpp"

#include "report/html_page.hpp"
#include "report/svg/charts.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

std::string microseconds(uint64_t ns) {
  return ns == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(ns) / 1e3);
}

std::string ratio(double value, const char* unit = "") {
  return value > 0 ? fmt::format("{:.2f}{}", value, unit) : "-";
}

std::string introduction(const run_page& page) {
  const run_table& t = page.table;
  std::string out = html_paragraph(fmt::format("Devices {}, toolchain {}, seed {}{}.", t.gpus,
    t.toolchain.empty() ? "-" : t.toolchain, t.seed,
    t.seed_given ? " (given: the inputs are no secret)" : ""));
  out += html_paragraph(fmt::format("Times in microseconds, {}. {}", t.time_note, t.baseline_note));
  const suite_summary& s = t.summary;
  out += html_paragraph(fmt::format(
    "Geometric mean {:.3f}x over {} of {} problems (a failed one counts 1.0x); {} faster than T_b, "
    "{} more than "
    "twice as fast; median SOL score {:.2f}. {} attempts, {:.1f} GPU-seconds under lease. {}.",
    s.geomean_all, s.with_baseline, s.problems, s.faster_count, s.twice_as_fast_count, s.sol_median,
    t.attempts, static_cast<double>(t.gpu_ns) / 1e9,
    t.ended ? "The run ended: " + t.end_reason
            : "The log has no end: the run goes on or was killed"));
  if (!t.digest.empty())
    out += html_paragraph("Digest of the log: " + t.digest);
  return out;
}

std::string problem_table(const run_table& table) {
  std::vector<std::vector<std::string>> rows;
  for (const problem_row& p : table.problems) {
    std::string note = p.limited_by.empty() ? "" : "limited by " + p.limited_by;
    if (!p.reason.empty())
      note += (note.empty() ? "" : "; ") + p.reason;
    rows.push_back({p.name, p.status, microseconds(p.baseline_ns), microseconds(p.best_ns),
      ratio(p.speedup, "x"), ratio(p.floor_share), ratio(p.sol_score),
      fmt::format("{}", p.attempts), fmt::format("{:.1f}", static_cast<double>(p.gpu_ns) / 1e9),
      note});
  }
  return html_table({"problem", "status", "#T_b", "#best", "#faster", "#floor", "#SOL", "#tries",
                      "#GPU-s", "notes"},
           rows)
    + html_paragraph(
      "Column floor: the share of the floor that the best kernel reaches on the largest workload.");
}

std::string progress_chart(const run_timeline& timeline) {
  chart_line line;
  line.is_step = true;
  for (const progress_point& p : timeline.progress) {
    line.x.push_back(p.gpu_seconds);
    line.y.push_back(p.geomean);
  }
  chart_frame frame;
  frame.title = "Geometric mean of the speed-ups against GPU-seconds";
  frame.x_label = "GPU-seconds under lease";
  frame.y_label = "T_b / best";
  frame.y_include = 1;
  frame.y_line = 1;
  return line_chart(frame, {line});
}

std::string device_chart(const run_timeline& timeline) {
  gantt_rows gantt;
  gantt.title = "What the devices did";
  gantt.x_label = "seconds since the start of the run";
  gantt.rows = timeline.gpus;
  for (auto activity : {gpu_activity::granted, gpu_activity::working, gpu_activity::verifying,
         gpu_activity::out_of_service})
    gantt.legend.emplace_back(to_string(activity));
  for (const gpu_span& span : timeline.spans)
    gantt.spans.push_back({span.gpu, span.from, span.to, static_cast<size_t>(span.activity),
      fmt::format("{}, {:.3f} s", span.what, span.to - span.from)});
  return gantt_chart(gantt);
}

std::string share_of_time(const run_timeline& timeline) {
  std::vector<std::string> legend;
  for (auto activity : {gpu_activity::granted, gpu_activity::working, gpu_activity::verifying,
         gpu_activity::out_of_service})
    legend.emplace_back(to_string(activity));
  legend.emplace_back("free");
  std::vector<stacked_row> rows;
  for (const auto& gpu : timeline.gpus)
    rows.push_back({gpu, std::vector<double>(legend.size(), 0.0)});
  for (const gpu_span& span : timeline.spans)
    rows[span.gpu].parts[static_cast<size_t>(span.activity)] += span.to - span.from;
  for (auto& row : rows) {
    double used = 0;
    for (double part : row.parts)
      used += part;
    row.parts.back() = std::max(0.0, timeline.end_seconds - used);
  }
  return share_chart("Shares of the run's time", legend, rows);
}

std::string wait_chart(const run_timeline& timeline) {
  chart_frame frame;
  frame.title = "How long leases were waited for";
  frame.x_label = "seconds from the request to the grant";
  frame.y_label = "share of the leases";
  frame.y_include = 0;
  return line_chart(frame, {cumulative("", timeline.waits)});
}

std::string verdict_table(const winner& best) {
  std::vector<std::vector<std::string>> rows;
  for (const logged_workload& w : best.workloads) {
    std::string note = w.shrunken ? "checked on a smaller twin" : "";
    if (w.needs_audit)
      note += std::string(note.empty() ? "" : "; ")
        + "below the floor: counts nothing until somebody has looked";
    if (!w.detail.empty())
      note += (note.empty() ? "" : "; ") + w.detail;
    rows.push_back({w.uuid, w.status, microseconds(w.time_ns), microseconds(w.baseline_ns),
      microseconds(w.floor_ns), ratio(w.speedup, "x"), ratio(w.sol_score),
      w.max_absolute_error ? fmt::format("{:.3g}", *w.max_absolute_error) : "-", note});
  }
  return html_table(
    {"workload", "status", "#time", "#T_b", "#floor", "#faster", "#SOL", "#largest error", "notes"},
    rows);
}

std::string winner_part(const run_page& page, const winner& best) {
  if (best.hash.empty())
    return html_details(best.problem + ": no candidate passed", "");
  std::string body = html_paragraph(fmt::format(
    "Candidate {} ({}), times {} on {}.", best.hash, best.kind, best.origin, best.device));
  body += verdict_table(best);
  if (const auto texts = page.texts.find(best.hash); texts != page.texts.end())
    body += html_paragraph("Launch plan") + html_code(texts->second.plan)
      + html_paragraph("Device code") + html_code(texts->second.source);
  return html_details(fmt::format("{}: {}", best.problem, best.key), body);
}

} // namespace

std::string to_html(const run_page& page) {
  std::vector<std::string> parts = {introduction(page), html_heading("Problems"),
    problem_table(page.table), html_heading("Progress"), progress_chart(page.timeline),
    html_heading("Devices"), device_chart(page.timeline), share_of_time(page.timeline),
    wait_chart(page.timeline), html_heading("Best candidates")};
  for (const winner& best : page.winners.problems)
    parts.push_back(winner_part(page, best));
  if (!page.table.planted.empty()) {
    parts.push_back(html_heading("Candidates given by file"));
    std::vector<std::vector<std::string>> rows;
    for (const planted_row& row : page.table.planted)
      rows.push_back({row.problem, row.key, row.status, row.reason});
    parts.push_back(html_table({"problem", "candidate", "status", "reason"}, rows));
  }
  return html_page("Gristmill run " + page.name, parts);
}

} // namespace gristmill
