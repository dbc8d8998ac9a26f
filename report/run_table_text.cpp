#include "report/run_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gristmill {

namespace {

std::string microseconds(uint64_t ns) {
  return ns == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(ns) / 1e3);
}

std::string number(double value, const char* unit) {
  return value > 0 ? fmt::format("{:.2f}{}", value, unit) : "-";
}

constexpr size_t columns = 110;

/// Whether a byte begins a character of UTF-8, and with it a column.
bool begins(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins));
}

/// Bytes of the first `width` characters.
size_t bytes_of(std::string_view text, size_t width) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins(text[at]) && width-- == 0)
      break;
  return at;
}

/// Names and reasons come from strangers: a line feed or an escape in them is no part of the table.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      c = ' ';
  return text;
}

/// Exactly `width` columns; shortened at the end, so that a table keeps its columns.
std::string fitted(const std::string& text, size_t width) {
  auto line = one_line(text);
  auto has = width_of(line);
  if (has <= width)
    return line + std::string(width - has, ' ');
  return line.substr(0, bytes_of(line, width - 1)) + "~";
}

/// Broken at spaces where there are any; what follows is indented.
std::string wrapped(const std::string& text) {
  constexpr std::string_view indent = "      ";
  std::string out;
  auto rest = one_line(text);
  while (width_of(rest) > columns) {
    auto cut = bytes_of(rest, columns);
    auto space = rest.rfind(' ', cut);
    if (space == std::string::npos || space <= indent.size())
      space = cut;
    out += rest.substr(0, space) + "\n";
    auto next = rest.find_first_not_of(' ', space);
    rest = next == std::string::npos ? std::string{} : std::string{indent} + rest.substr(next);
  }
  return out + rest + "\n";
}

std::string row_text(const problem_row& p) {
  return fmt::format("{} {} {:>9} {:>9} {:>7} {:>6} {:>5} {:>5} {:>7.1f}\n", fitted(p.name, 26),
    fitted(p.status, 19), microseconds(p.baseline_ns), microseconds(p.best_ns),
    number(p.speedup, "x"), number(p.floor_share, ""), number(p.sol_score, ""), p.attempts,
    static_cast<double>(p.gpu_ns) / 1e9);
}

} // namespace

std::string to_text(const run_table& table) {
  std::string text = wrapped(fmt::format("gpus {}   toolchain {}   seed {}{}", table.gpus,
    table.toolchain.empty() ? "-" : table.toolchain, table.seed,
    table.seed_given ? " (given: the inputs are no secret)" : ""));
  text += wrapped("times in microseconds, " + table.time_note);
  if (!table.baseline_note.empty())
    text += wrapped(table.baseline_note);
  text +=
    "column floor: the share of the floor that the best kernel reaches on the largest workload\n\n";
  text += fmt::format("{:<26} {:<19} {:>9} {:>9} {:>7} {:>6} {:>5} {:>5} {:>7}\n", "problem",
    "status", "T_b", "best", "faster", "floor", "SOL", "tries", "gpu-s");
  for (const auto& p : table.problems)
    text += row_text(p);
  text += "\n";
  for (const auto& p : table.problems) {
    std::string note = p.reason;
    if (!p.limited_by.empty())
      note = "limited by " + p.limited_by + (note.empty() ? "" : "; " + note);
    if (!note.empty())
      text += wrapped(fmt::format("  {}: {}", p.name, note));
  }
  if (!table.planted.empty()) {
    text += "\ncandidates given by file\n";
    for (const auto& c : table.planted)
      text += wrapped(fmt::format(
        "  {} {} {} {}", fitted(c.problem, 20), fitted(c.key, 24), fitted(c.status, 19), c.reason));
  }
  if (!table.skipped.empty()) {
    text +=
      fmt::format("\n{} problem{} could not be loaded and {} left out\n", table.skipped.size(),
        table.skipped.size() == 1 ? "" : "s", table.skipped.size() == 1 ? "was" : "were");
    for (const auto& one : table.skipped)
      text += wrapped(fmt::format("  {}: {}", one.problem, one.reason));
  }
  const auto& s = table.summary;
  text += "\n"
    + wrapped(fmt::format("geomean {:.3f}x over {} of {} problems (a failed one counts 1.0x)   "
                          "wins {}   above 2x {}   median SOL {:.2f} of {}",
      s.geomean_all, s.with_baseline, s.problems, s.faster_count, s.twice_as_fast_count,
      s.sol_median, s.problems));
  const auto gpu_wall = static_cast<double>(table.wall_ns) * static_cast<double>(table.gpu_count);
  text += wrapped(fmt::format("{} attempts{}, {:.1f} GPU-seconds under lease{}; {}", table.attempts,
    table.unproposed == 0 ? "" : fmt::format(" ({} without a candidate)", table.unproposed),
    static_cast<double>(table.gpu_ns) / 1e9,
    gpu_wall > 0 ? fmt::format(", {:.0f} % of {} GPU{} for {:.1f} s",
      100 * static_cast<double>(table.gpu_ns) / gpu_wall, table.gpu_count,
      table.gpu_count == 1 ? "" : "s", static_cast<double>(table.wall_ns) / 1e9)
                 : "",
    table.ended ? table.end_reason : "the log has no end: the run goes on or was killed"));
  if (auto models = to_text(table.models); !models.empty())
    text += wrapped(models);
  if (!table.digest.empty())
    text += "log digest " + table.digest + "\n";
  return text;
}

std::string to_json(const run_table& table) {
  nlohmann::ordered_json out{{"schema", "gristmill.table/1"}, {"gpus", table.gpus},
    {"toolchain", table.toolchain}, {"time_note", table.time_note},
    {"baseline_note", table.baseline_note}, {"seed", table.seed}, {"seed_given", table.seed_given}};
  auto& rows = out["problems"] = nlohmann::ordered_json::array();
  for (const auto& p : table.problems)
    rows.push_back({{"name", p.name}, {"status", p.status}, {"baseline_ns", p.baseline_ns},
      {"best_ns", p.best_ns}, {"speedup", p.speedup}, {"floor_share", p.floor_share},
      {"sol_score", p.sol_score}, {"attempts", p.attempts}, {"gpu_ns", p.gpu_ns},
      {"limited_by", p.limited_by}, {"reason", p.reason}, {"candidate", p.best_candidate},
      {"key", p.best_key}});
  auto& skipped = out["skipped"] = nlohmann::ordered_json::array();
  for (const auto& one : table.skipped)
    skipped.push_back({{"problem", one.problem}, {"reason", one.reason}});
  auto& planted = out["planted"] = nlohmann::ordered_json::array();
  for (const auto& c : table.planted)
    planted.push_back(
      {{"problem", c.problem}, {"key", c.key}, {"status", c.status}, {"reason", c.reason}});
  const auto& s = table.summary;
  out["summary"] = {{"problems", s.problems}, {"passed", s.passed_count},
    {"with_baseline", s.with_baseline}, {"geomean", s.geomean_all}, {"wins", s.faster_count},
    {"above_2x", s.twice_as_fast_count}, {"sol_median", s.sol_median}, {"sol_mean", s.sol_mean},
    {"attempts", table.attempts}, {"gpu_ns", table.gpu_ns}, {"wall_ns", table.wall_ns},
    {"gpu_count", table.gpu_count}};
  if (table.unproposed > 0)
    out["summary"]["unproposed"] = table.unproposed;
  if (const auto& m = table.models; m.calls > 0)
    out["models"] = {{"calls", m.calls}, {"input_tokens", m.input_tokens},
      {"output_tokens", m.output_tokens}, {"nano_usd", m.nano_usd},
      {"held_nano_usd", m.held_nano_usd}, {"calls_unknown", m.calls_unknown},
      {"calls_unpriced", m.calls_unpriced}};
  out["ended"] = table.ended;
  out["clean"] = table.clean;
  out["end_reason"] = table.end_reason;
  out["digest"] = table.digest;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace gristmill
