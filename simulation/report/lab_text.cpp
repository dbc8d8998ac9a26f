#include "simulation/report/lab_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// With more variants a column each would be too wide for any screen.
constexpr size_t columns_max = 6;
/// So many differences are shown with all metrics.
constexpr size_t blocks_max = 3;
/// Most telling first; of the short table.
constexpr const char* headlines[] = {"wait_p50_s", "wait_p99_s", "utilisation", "jain_seconds",
  "starved", "geomean", "hours_to_95", "area", "gap_closed"};

/// Characters on a screen: every byte that begins one.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
    text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

std::string to_left(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string to_right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

/// Columns as wide as their widest cell, the first to the left and the others to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += i == 0 ? to_left(row[i], widths[i]) : "  " + to_right(row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

/// Decimals that show two digits of `half`.
int decimals_for(double half) {
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(half))), 0, 9);
}

std::string number_text(const summary_cell& cell, bool with_sign) {
  if (!cell.applies)
    return "-";
  if (cell.never > 0 && cell.over.count == 0)
    return "none";
  if (cell.never > 0)
    return fmt::format("none in {} of {}", cell.never, cell.over.count + cell.never);
  const double mean = cell.over.mean;
  if (!cell.has_interval())
    return with_sign ? fmt::format("{:+.4g}", mean) : fmt::format("{:.4g}", mean);
  const double half = cell.over.half;
  if (half == 0 || !std::isfinite(half))
    return fmt::format(
      "{} ± {}", with_sign ? fmt::format("{:+.4g}", mean) : fmt::format("{:.4g}", mean), half);
  const int digits = decimals_for(half);
  return with_sign ? fmt::format("{:+.{}f} ± {:.{}f}", mean, digits, half, digits)
                   : fmt::format("{:.{}f} ± {:.{}f}", mean, digits, half, digits);
}

std::string length_text(double seconds) {
  if (seconds >= 2 * 86'400)
    return fmt::format("{:.4g} days", seconds / 86'400);
  if (seconds >= 3'600)
    return fmt::format("{:.4g} h", seconds / 3'600);
  return fmt::format("{:.4g} s", seconds);
}

std::string size_text(const scenario& what) {
  uint64_t gpus = 0;
  uint64_t agents = 0;
  for (const auto& group : what.gpus)
    gpus += group.count;
  for (const auto& group : what.agents)
    agents += group.count;
  std::string out = fmt::format("{} agents, {} GPUs", agents, gpus);
  if (what.problems > 0)
    out += fmt::format(", {} problems", what.problems);
  return out
    + fmt::format(", {} (the first {} not measured)", length_text(what.duration_s),
      length_text(what.warm_up_s));
}

std::string seeds_text(const lab_plan& plan) {
  return plan.seeds == 1
    ? fmt::format("seed {}", plan.first_seed)
    : fmt::format("seeds {} to {}", plan.first_seed, plan.first_seed + (plan.seeds - 1));
}

std::string role_of(const lab_plan& plan, size_t v) {
  const auto& variant = plan.variants[v];
  std::string out;
  if (plan.baselines[variant.point] == v && plan.variants.size() > 1)
    out += ", baseline";
  if (variant.what.problems > 0 && variant.what.planner == "oracle")
    out += ", a bound: it sees what no planner can know";
  else if (variant.is_bound)
    out += ", for comparison";
  return out;
}

std::string columns_text(const lab_plan& plan, const lab_summary& summary) {
  std::vector<std::vector<std::string>> rows(1, {""});
  for (size_t v = 0; v < summary.variants.size(); ++v)
    rows.front().push_back(letter_of(v));
  for (size_t m = 0; m < summary.metrics.size(); ++m) {
    if (!is_shown(plan, summary.metrics[m]))
      continue;
    rows.push_back({summary.metrics[m].title});
    for (const auto& v : summary.variants)
      rows.back().push_back(cell_text(v.cells[m]));
  }
  return table_text(rows);
}

std::string lines_text(const lab_plan& plan, const lab_summary& summary) {
  std::vector<std::vector<std::string>> rows(1, {"variant"});
  std::vector<size_t> chosen;
  for (const char* key : headlines)
    if (const size_t m = summary.metric(key); is_shown(plan, summary.metrics[m])) {
      chosen.push_back(m);
      rows.front().push_back(summary.metrics[m].title);
    }
  for (size_t v = 0; v < summary.variants.size(); ++v) {
    rows.push_back({letter_of(v)});
    for (size_t m : chosen)
      rows.back().push_back(cell_text(summary.variants[v].cells[m]));
  }
  return table_text(rows);
}

std::string difference_block(
  const lab_plan& plan, const lab_summary& summary, const lab_difference& d) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> equal;
  for (size_t m = 0; m < summary.metrics.size(); ++m) {
    if (!is_compared(plan, summary.metrics[m]) || !d.cells[m].applies)
      continue;
    if (d.verdicts[m] == lab_verdict::same) {
      equal.push_back(summary.metrics[m].title);
      continue;
    }
    rows.push_back(
      {"  " + summary.metrics[m].title, difference_text(d.cells[m]), ranking_text(d.verdicts[m])});
  }
  std::string out =
    fmt::format("{} - {}\n", letter_of(d.variant), letter_of(d.baseline)) + table_text(rows);
  if (!equal.empty()) {
    out += "  the same in every seed:";
    for (size_t i = 0; i < equal.size(); ++i)
      out += (i == 0 ? " " : "; ") + equal[i];
    out += "\n";
  }
  return out;
}

/// One line a difference: the headline metrics of a sweep with many variants.
std::string difference_lines(const lab_plan& plan, const lab_summary& summary) {
  std::vector<std::vector<std::string>> rows(1, {"difference"});
  std::vector<size_t> chosen;
  for (const char* key : headlines)
    if (const size_t m = summary.metric(key);
        is_shown(plan, summary.metrics[m]) && summary.metrics[m].key != "gap_closed") {
      chosen.push_back(m);
      rows.front().push_back(summary.metrics[m].title);
    }
  for (const auto& d : summary.differences) {
    rows.push_back({letter_of(d.variant) + " - " + letter_of(d.baseline)});
    for (size_t m : chosen)
      rows.back().push_back(!d.cells[m].applies     ? "-"
          : d.verdicts[m] == lab_verdict::undecided ? difference_text(d.cells[m]) + " no ranking"
                                                    : difference_text(d.cells[m]));
  }
  return table_text(rows);
}

} // namespace

std::string cell_text(const summary_cell& cell) {
  return number_text(cell, false);
}

std::string difference_text(const summary_cell& cell) {
  return number_text(cell, true);
}

std::string ranking_text(lab_verdict verdict) {
  return verdict == lab_verdict::undecided ? "no ranking: the interval spans zero"
                                           : to_string(verdict);
}

bool has_problems(const lab_plan& plan) {
  return std::any_of(plan.variants.begin(), plan.variants.end(),
    [](const lab_variant& v) { return v.what.problems > 0; });
}

bool is_shown(const lab_plan& plan, const summary_metric& metric) {
  return metric.shown && (!metric.needs_problems || has_problems(plan));
}

bool is_compared(const lab_plan& plan, const summary_metric& metric) {
  return is_shown(plan, metric) && metric.sense != metric_sense::neither
    && metric.key != "gap_closed";
}

std::string letter_of(size_t variant) {
  std::string out;
  for (size_t rest = variant + 1; rest > 0; rest = (rest - 1) / 26)
    out.insert(out.begin(), static_cast<char>('A' + (rest - 1) % 26));
  return out;
}

std::string header_text(const lab_plan& plan, const lab_summary& summary, const lab_identity& who) {
  std::string out =
    fmt::format("SIMULATED  {}: {}\n", plan.name, size_text(plan.variants.front().what));
  uint64_t transitions = 0;
  for (const auto& v : summary.variants)
    transitions += v.transitions;
  out += fmt::format("gristmill {}, build {}, engine {}, {}, {} runs, {} lease transitions\n",
    who.version, who.build, to_string(plan.engine), seeds_text(plan), plan.runs(), transitions);
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const auto& variant = plan.variants[v];
    std::string where;
    for (const auto& [key, value] : plan.points[variant.point])
      where += fmt::format("{}={} ", key, value);
    out += fmt::format("{}  {}lease policy {}{}; config {}, digest {}{}\n", letter_of(v), where,
      variant.what.lease_policy,
      variant.what.problems > 0 ? ", planner " + variant.what.planner : "",
      variant.config.substr(0, 16), summary.variants[v].digest, role_of(plan, v));
  }
  return out;
}

std::string interval_note(const lab_plan& plan) {
  if (plan.seeds == 1)
    return "One seed: there is no interval, and nothing can be ranked. Give more with --seeds.";
  return fmt::format(
    "± is the half width of the 95 % interval of the mean over {} seeds (Student's "
    "t). Differences are of equal seeds; where their interval spans zero there is "
    "no ranking.",
    plan.seeds);
}

std::string model_note() {
  return "SIMULATED: agents, kernels, gains and GPUs are models; lease table, lease policies and "
         "planners are the production code. What one published outcome cannot identify (how gains "
         "diminish) is a parameter, not a finding.";
}

std::string to_text(const lab_plan& plan, const lab_summary& summary, const lab_identity& who) {
  std::string out = header_text(plan, summary, who) + "\n";
  const bool narrow = plan.variants.size() <= columns_max;
  out += narrow ? columns_text(plan, summary) : lines_text(plan, summary);
  if (plan.seeds > 1 && !summary.differences.empty()) {
    out += "\nDifferences, pairs of equal seeds\n";
    if (summary.differences.size() <= blocks_max)
      for (const auto& d : summary.differences)
        out += difference_block(plan, summary, d);
    else
      out += difference_lines(plan, summary);
  }
  return out + "\n" + interval_note(plan) + "\n" + model_note() + "\n";
}

} // namespace gristmill
