#include "protocol/json_document.hpp"
#include "simulation/model/counter_stream.hpp"
#include "simulation/replay/replay.hpp"

#include <fmt/format.h>

namespace gristmill {

using nlohmann::json;
using std::chrono::nanoseconds;

namespace {

/// A stranger's text on a terminal: one line, nothing that moves the cursor.
std::string shown(const std::string& text, size_t max = 60) {
  auto out = text.size() <= max ? text : text.substr(0, max) + "...";
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return out;
}

std::string grant_text(const std::optional<replay_grant>& grant) {
  if (!grant)
    return "nothing more is granted";
  return fmt::format("at {:.6f} s {} gets {} ({}asked at {:.6f} s)", seconds_of(grant->at),
    shown(grant->agent), shown(grant->gpu),
    grant->attempt.empty() ? "" : shown(grant->attempt) + ", ", seconds_of(grant->asked));
}

std::string divergence_text(const policy_replay& one) {
  if (!one.divergence)
    return fmt::format("no divergence: all {} grants in the recorded order, on the recorded GPUs; "
                       "times differ by at most {:.6f} s",
      one.agreed, seconds_of(one.shift_max));
  const auto& d = *one.divergence;
  auto out = fmt::format("first divergence at grant {}{}", d.position,
    d.recorded ? fmt::format(", line {}", d.recorded->line) : std::string{});
  out += "\n    recorded  " + grant_text(d.recorded);
  out += "\n    replay    " + grant_text(d.replayed);
  if (one.agreed > 0)
    out += fmt::format("\n    the {} grants before agree; times differ by at most {:.6f} s",
      one.agreed, seconds_of(one.shift_max));
  return out;
}

std::string row(const std::string& name, const replay_metrics& m) {
  return fmt::format("{:<28} {:>8} {:>7} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>6.1f} "
                     "{:>6.3f} {:>11.3f}\n",
    shown(name, 28), m.grants, m.given_up, m.wait_mean_s, m.wait_p50_s, m.wait_p90_s, m.wait_p99_s,
    m.wait_max_s, m.utilisation * 100, m.jain, m.makespan_s);
}

json json_of(const replay_metrics& m) {
  return {{"requests", m.requests}, {"grants", m.grants}, {"given_up", m.given_up},
    {"lost", m.lost}, {"wait_mean_s", m.wait_mean_s}, {"wait_p50_s", m.wait_p50_s},
    {"wait_p90_s", m.wait_p90_s}, {"wait_p99_s", m.wait_p99_s}, {"wait_max_s", m.wait_max_s},
    {"makespan_s", m.makespan_s}, {"utilisation", m.utilisation}, {"jain", m.jain}};
}

json json_of(const std::optional<replay_grant>& grant) {
  if (!grant)
    return nullptr;
  json out{{"t_ns", grant->at.count()}, {"asked_ns", grant->asked.count()}, {"agent", grant->agent},
    {"problem", grant->problem}, {"attempt", grant->attempt}, {"gpu", grant->gpu}};
  if (grant->line != 0)
    out["line"] = grant->line;
  return out;
}

} // namespace

std::string to_text(const replay_report& report) {
  const auto& was = report.recorded;
  auto out = fmt::format("read: {} lines of a {}, {:.3f} s: {} requests, {} grants, {} given up, "
                         "{} lost with their GPU; {} agents, {} GPUs\n",
    report.lines, report.source, seconds_of(report.span), was.requests, was.grants, was.given_up,
    was.lost, report.agents, report.gpus);
  if (!report.intended)
    out += fmt::format(
      "recorded under: {}\n", report.policy.empty() ? "not said" : shown(report.policy, 200));
  if (!report.notes.empty()) {
    out += "\nleft out or changed\n";
    for (const auto& note : report.notes)
      out += "  " + shown(note, 300) + "\n";
  }
  out += "\nassumed\n";
  for (const auto& text : report.assumptions)
    out += "  " + text + "\n";
  if (!report.intended) {
    out += "\norder of the grants\n";
    for (const auto& one : report.policies)
      out += fmt::format(
        "  {}{}: {}\n", shown(one.policy, 200), one.own ? " (its own)" : "", divergence_text(one));
  }
  out += fmt::format("\n{:<28} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>11}\n",
    "waits in s", "grants", "gave up", "mean", "p50", "p90", "p99", "max", "util %", "Jain",
    "makespan s");
  if (!report.intended)
    out += row("recorded", was);
  for (const auto& one : report.policies)
    out += row(one.policy, one.metrics);
  out += "\ndigests of the replays\n";
  for (const auto& one : report.policies)
    out += fmt::format("  {} {}\n", one.digest, shown(one.policy, 200));
  return out;
}

std::string to_json(const replay_report& report) {
  json root{{"schema", "gristmill.replay/1"}, {"source", report.source},
    {"recorded_policy", report.policy}, {"lines", report.lines}, {"agents", report.agents},
    {"gpus", report.gpus}, {"span_ns", report.span.count()}, {"intended", report.intended},
    {"notes", report.notes}, {"assumptions", report.assumptions},
    {"recorded", json_of(report.recorded)}};
  auto& policies = root["policies"] = json::array();
  for (const auto& one : report.policies) {
    json entry{{"policy", one.policy}, {"own", one.own}, {"metrics", json_of(one.metrics)},
      {"digest", one.digest}};
    if (!report.intended) {
      entry["agreed"] = one.agreed;
      entry["shift_max_ns"] = one.shift_max.count();
      entry["divergence"] = nullptr;
      if (one.divergence)
        entry["divergence"] = {{"position", one.divergence->position},
          {"recorded", json_of(one.divergence->recorded)},
          {"replayed", json_of(one.divergence->replayed)}};
    }
    policies.push_back(std::move(entry));
  }
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace gristmill
