#include "simulation/selfcheck/selfcheck.hpp"

#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t name_width = 68;

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

/// The estimate's distance in standard errors and in parts of the exact value; a bound has
/// neither.
std::string row(const judged_line& line) {
  const bool estimated = line.rule == line_rule::estimate || line.rule == line_rule::mean_at_most;
  std::string error, in_errors, in_parts;
  if (estimated) {
    error = number(line.standard_error);
    if (line.standard_error > 0 && std::isfinite(line.standard_error))
      in_errors = fmt::format("{:+.2f}", line.deviation() / line.standard_error);
    in_parts = line.exact == 0 ? "-" : fmt::format("{:+.3f}", 100 * line.deviation() / line.exact);
  }
  const char* sign =
    line.rule == line_rule::at_most || line.rule == line_rule::mean_at_most ? "<=" : "";
  return fmt::format("  {:<{}} {:>2} {:>11} {:>11} {:>11} {:>7} {:>8}  {}\n", line.name, name_width,
    sign, number(line.exact), number(line.estimate), error, in_errors, in_parts,
    to_string(line.verdict));
}

} // namespace

std::string to_text(const selfcheck_outcome& what, const std::string& version) {
  std::string out = fmt::format(
    "gristmill {} selfcheck{}, seeds 1 to {}\n", version, what.quick ? " --quick" : "", what.seeds);
  if (what.mutant != mutant_kind::none)
    out += fmt::format(
      "mutant {}: a mistake is under the engine on purpose, to see which checks find it\n",
      to_string(what.mutant));
  out += fmt::format("config {}\ndigest {}\n", what.config_hash, what.digest);
  out += fmt::format("\n  {:<{}} {:>2} {:>11} {:>11} {:>11} {:>7} {:>8}  {}\n", "", name_width, "",
    "exact", "estimate", "std. error", "in SE", "in %", "verdict");
  size_t lines = 0;
  std::vector<std::string> failed;
  for (const auto& each : what.checks) {
    out += fmt::format("{}: {} ({})\n", each.name, each.what, each.source);
    for (const auto& line : each.lines)
      out += row(line);
    if (!each.error.empty())
      out += "  NO RESULT: " + each.error + "\n";
    lines += each.lines.size();
    if (!each.passed())
      failed.push_back(each.name);
  }
  out += "\n";
  if (failed.empty())
    return out + fmt::format("all {} checks pass ({} numbers)\n", what.checks.size(), lines);
  out += fmt::format("{} of {} checks FAIL:", failed.size(), what.checks.size());
  for (const auto& name : failed)
    out += " " + name;
  return out + "\n";
}

} // namespace gristmill
