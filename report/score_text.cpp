#include "protocol/json_document.hpp"
#include "report/score_traces.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// One line of printable text, shortened to `width`; names come from strangers.
std::string fitted(std::string_view text, size_t width) {
  std::string out;
  for (char c : text)
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  if (out.size() > width) {
    size_t end = width - 1;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80)
      --end; // Not in the middle of a character.
    out = out.substr(0, end) + "~";
  }
  return out;
}

std::string microseconds(double ns) {
  return ns > 0 ? fmt::format("{:.2f}", ns / 1e3) : "-";
}

std::string group_row(const group_score& g) {
  return fmt::format("{:<28} {:>5}/{:<5} {:>4}/{:<4} {:>7.4f} {:>7.4f} {:>8.3f}x {:>6} {:>6}\n",
    fitted(g.name, 28), g.workloads_passed, g.workloads, g.passed, g.problems, g.score_mean,
    g.score_median, g.speedup_geomean, g.faster, g.need_audit);
}

ordered_json group_json(const group_score& g) {
  return {{"name", g.name}, {"problems", g.problems}, {"problems_passed", g.passed},
    {"workloads", g.workloads}, {"workloads_passed", g.workloads_passed},
    {"need_audit", g.need_audit}, {"score_mean", g.score_mean}, {"score_median", g.score_median},
    {"speedup_geomean", g.speedup_geomean}, {"faster", g.faster}};
}

ordered_json workload_json(const workload_score& w) {
  ordered_json out{{"uuid", w.from.uuid},
    {"status", w.from.status.empty() ? ordered_json(nullptr) : ordered_json(w.from.status)},
    {"t_k_ns", w.from.passed ? ordered_json(w.from.t_k) : ordered_json(nullptr)},
    {"t_b_ns", w.from.t_b}, {"t_sol_ns", w.from.t_sol}, {"score", w.score}, {"speedup", w.speedup},
    {"headroom", w.headroom}, {"close", w.is_close}, {"needs_audit", w.needs_audit},
    {"audited", w.from.audited}};
  out["score_per_percent"] = {
    {"t_k", w.per_cent_of_t_k}, {"t_b", w.per_cent_of_t_b}, {"t_sol", w.per_cent_of_t_sol}};
  return out;
}

} // namespace

std::string to_text(const trace_score& score) {
  const auto& table = score.provenance;
  std::string text = fmt::format(
    "bounds  {}\n        sha256 {}\n        source {}, {}\n        device {}, clocks {}\n",
    fitted(score.bounds_file, 100), score.bounds_sha256, fitted(table.source, 80), table.date,
    fitted(table.device, 30), fitted(table.clock, 55));
  if (!table.t_sol_method.empty())
    text += fmt::format("        T_SOL: {}\n", fitted(table.t_sol_method, 95));
  if (!table.t_b_method.empty())
    text += fmt::format("        T_b: {}\n", fitted(table.t_b_method, 95));
  text += fmt::format("traces  of {}{}\n",
    score.hardware.empty() ? "nothing: there is none" : fitted(score.hardware, 60),
    score.modelled ? "; times MODELLED, not measured" : "");
  if (score.other_device)
    text += "        ANOTHER DEVICE than the table's: not comparable with scores of that device\n";
  text += fmt::format("\n{:<28} {:<14} {:>9} {:>7} {:>7} {:>9} {:>11} {:>5} {:>5}\n", "problem",
    "category", "passed", "S mean", "S med.", "geomean", "T_k (us)", "close", "audit");
  for (const auto& p : score.suite.problems)
    text +=
      fmt::format("{:<28} {:<14} {:>4}/{:<4} {:>7.4f} {:>7.4f} {:>8.3f}x {:>11} {:>5} {:>5}\n",
        fitted(p.name, 28), fitted(p.category, 14), p.passed, p.total, p.score_mean, p.score_median,
        p.speedup_geomean, microseconds(p.latency_geomean), p.close, p.need_audit);
  text += fmt::format("\n{:<28} {:>11} {:>9} {:>7} {:>7} {:>9} {:>6} {:>6}\n", "category",
    "workloads", "problems", "S mean", "S med.", "geomean", "faster", "audit");
  for (const auto& g : score.suite.categories)
    text += group_row(g);
  text += group_row(score.suite.all);
  text +=
    "\nS over all workloads of a problem and all problems: failed and missing count 0; in the "
    "geomean of T_b/T_k\nthey count 1.0x. T_k only where every workload passed. close: T_b is "
    "less than twice T_SOL, so noise weighs.\n";
  std::string audits;
  for (const auto& p : score.suite.problems)
    for (const auto& w : p.workloads)
      if (w.needs_audit)
        audits += fmt::format("  {} {}: T_k {} ns is below T_SOL {} ns; counts 0\n",
          fitted(p.name, 28), fitted(w.from.uuid, 40), w.from.t_k, w.from.t_sol);
  if (!audits.empty())
    text +=
      "\nneed an audit: the measurement, the bound or the kernel is not what it seems\n" + audits;
  if (!score.audited.empty()) {
    text += "\naudited by the user, counted 1 at most\n";
    for (const auto& key : score.audited)
      text += "  " + fitted(key, 100) + "\n";
  }
  std::string close;
  for (const auto& p : score.suite.problems)
    for (const auto& w : p.workloads)
      if (w.is_close && w.per_cent_of_t_k != 0)
        close +=
          fmt::format("  {} {}: T_b/T_SOL {:.3f}; 1% of T_k moves S by {:.4f}, of T_b by {:.4f}, "
                      "of T_SOL by {:.4f}\n",
            fitted(p.name, 20), fitted(w.from.uuid, 12), w.headroom, w.per_cent_of_t_k,
            w.per_cent_of_t_b, w.per_cent_of_t_sol);
  if (!close.empty())
    text += "\nwhere the score amplifies noise\n" + close;
  for (const auto& note : score.notes)
    text += "note: " + fitted(note, 100) + "\n";
  return text;
}

std::string to_json(const trace_score& score) {
  const auto& table = score.provenance;
  ordered_json out{{"schema", "gristmill.score/1"}};
  out["bounds"] = {{"file", score.bounds_file}, {"sha256", score.bounds_sha256},
    {"source", table.source}, {"date", table.date}, {"device", table.device},
    {"clock", table.clock}, {"t_sol_method", table.t_sol_method}, {"t_b_method", table.t_b_method}};
  out["hardware"] = score.hardware;
  out["other_device"] = score.other_device;
  out["modelled"] = score.modelled;
  out["audited"] = score.audited;
  out["notes"] = score.notes;
  out["suite"] = group_json(score.suite.all);
  auto& categories = out["categories"] = ordered_json::array();
  for (const auto& g : score.suite.categories)
    categories.push_back(group_json(g));
  auto& problems = out["problems"] = ordered_json::array();
  for (const auto& p : score.suite.problems) {
    const auto solution = std::find_if(score.solutions.begin(), score.solutions.end(),
      [&](const auto& each) { return each.first == p.name; });
    ordered_json one{{"name", p.name}, {"category", p.category},
      {"solution",
        solution == score.solutions.end() ? ordered_json(nullptr) : ordered_json(solution->second)},
      {"workloads_total", p.total}, {"workloads_passed", p.passed}, {"missing", p.missing},
      {"need_audit", p.need_audit}, {"score_mean", p.score_mean}, {"score_median", p.score_median},
      {"speedup_geomean", p.speedup_geomean}, {"speedup_mean", p.speedup_mean},
      {"faster", p.faster},
      {"t_k_geomean_ns",
        p.latency_geomean > 0 ? ordered_json(p.latency_geomean) : ordered_json(nullptr)},
      {"close", p.close}};
    auto& workloads = one["workloads"] = ordered_json::array();
    for (const auto& w : p.workloads)
      workloads.push_back(workload_json(w));
    problems.push_back(std::move(one));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace gristmill
