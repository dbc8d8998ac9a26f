#include "report/export_run.hpp"

#include "protocol/json_document.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace gristmill {

namespace {

using nlohmann::json;

/// Numbers of a log: a library that reads them takes -1 for a huge count.
uint64_t count_in(const json& data, const char* key) {
  const auto found = data.find(key);
  if (found == data.end())
    return 0;
  if (!found->is_number_unsigned())
    throw json::type_error::create(
      302, std::string(key) + " must be a whole number of 0 or more", &*found);
  return found->get<uint64_t>();
}

double real_in(const json& data, const char* key) {
  const auto& value = data.at(key);
  if (!value.is_number())
    throw json::type_error::create(302, std::string(key) + " must be a number", &value);
  return value.get<double>();
}

std::optional<double> maybe_real(const json& data, const char* key) {
  if (!data.contains(key))
    return std::nullopt;
  return real_in(data, key);
}

logged_workload read_workload(const json& from) {
  logged_workload out;
  out.uuid = from.at("uuid").get<std::string>();
  out.status = from.at("status").get<std::string>();
  out.time_ns = count_in(from, "time_ns");
  out.baseline_ns = count_in(from, "baseline_ns");
  out.floor_ns = count_in(from, "floor_ns");
  out.speedup = real_in(from, "speedup");
  out.sol_score = real_in(from, "sol_score");
  out.needs_audit = from.value("needs_audit", false);
  out.shrunken = from.value("shrunken", false);
  out.detail = from.value("detail", std::string{});
  out.max_absolute_error = maybe_real(from, "max_absolute_error");
  out.max_relative_error = maybe_real(from, "max_relative_error");
  return out;
}

struct gathered {
  winner best;
  uint64_t best_ns = 0;
  /// Candidate -> its two texts.
  std::map<std::string, std::pair<std::string, std::string>> texts;
};

void take_verdict(gathered& g, const event& e, const json& data) {
  const auto objective = count_in(data, "objective_ns");
  if (data.at("status").get<std::string>() != "PASSED" || objective == 0
    || data.value("incumbent_stays", false))
    return;
  if (g.best_ns != 0 && objective >= g.best_ns && !data.value("promotion", false))
    return;
  g.best_ns = objective;
  g.best.hash = e.candidate;
  g.best.kind = data.at("kind").get<std::string>();
  g.best.key = data.value("key", std::string{});
  g.best.device = data.at("device").get<std::string>();
  g.best.origin = data.at("origin").get<std::string>();
  g.best.wall = e.wall;
  g.best.workloads.clear();
  for (const auto& row : data.at("workloads"))
    g.best.workloads.push_back(read_workload(row));
}

void take(run_winners& run, std::map<std::string, gathered>& problems, const event& e) {
  const auto data = json::parse(e.data);
  if (!data.is_object())
    throw json::type_error::create(302, "it must be an object", &data);
  if (e.kind == "run_started") {
    run.gpus = data.at("gpus").get<std::string>();
    run.toolchain = data.value("toolchain", std::string{});
    run.version = data.value("version", std::string{});
    run.time_note = data.at("time_note").get<std::string>();
    run.t_sol_method = data.value("t_sol_method", std::string{});
    run.t_b_method = data.value("t_b_method", std::string{});
    if (const auto measure = data.find("measure"); measure != data.end())
      run.facts = measure->value("facts", std::map<std::string, uint64_t>{});
    for (const auto& name : data.at("problems"))
      problems[name.get<std::string>()].best.problem =
        problems[name.get<std::string>()].best.definition_name = name.get<std::string>();
    return;
  }
  if (e.kind == "run_ended")
    run.ended = true;
  const auto found = problems.find(e.problem);
  if (found == problems.end())
    return;
  if (e.kind == "verdict")
    take_verdict(found->second, e, data);
  else if (e.kind == "attempt_finished" && data.contains("source"))
    found->second.texts[e.candidate] = {
      data.at("source").get<std::string>(), data.at("plan").get<std::string>()};
}

bool is_modelled(const winner& best) {
  return best.origin != "MEASURED" && best.origin != "measured";
}

} // namespace

result<run_winners> read_winners(std::span<const event> events) {
  if (events.empty() || events.front().kind != "run_started")
    return fail(errc::invalid_input, "the log does not begin with a run_started event");
  run_winners run;
  std::map<std::string, gathered> problems;
  for (const auto& e : events) {
    try {
      take(run, problems, e);
    } catch (const json::exception& error) {
      return fail(errc::invalid_input,
        fmt::format(
          "event {} ({}): its data is not what this kind has: {}", e.seq, e.kind, error.what()));
    }
  }
  for (auto& [name, g] : problems) {
    if (const auto texts = g.texts.find(g.best.hash);
        !g.best.hash.empty() && texts != g.texts.end())
      std::tie(g.best.source_sha256, g.best.plan_sha256) = texts->second;
    else if (!g.best.hash.empty())
      return fail(errc::invalid_input,
        fmt::format("{}: the log does not say which texts candidate {} has; the run was killed "
                    "before it was counted, or is older than this program",
          name, g.best.hash.substr(0, 12)));
    run.problems.push_back(std::move(g.best));
  }
  return run;
}

std::string iso_time(int64_t wall) {
  using namespace std::chrono;
  const sys_time<nanoseconds> at{nanoseconds{wall}};
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss<microseconds> time{duration_cast<microseconds>(at - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
    time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

result<std::vector<trace>> traces_of(const run_winners& run, const winner& best,
  const problem& target, const std::string& solution_name) {
  std::vector<trace> out;
  const bool modelled = is_modelled(best);
  for (const auto& work : target.workloads) {
    const auto row = std::find_if(best.workloads.begin(), best.workloads.end(),
      [&](const logged_workload& w) { return w.uuid == work.uuid; });
    if (row == best.workloads.end() || best.workloads.size() != target.workloads.size())
      return fail(errc::invalid_input,
        fmt::format("{}: its workloads are not those of the run ({} of the run, {} now; workload "
                    "{})",
          target.name, best.workloads.size(), target.workloads.size(), excerpt(work.uuid)));
    const auto status = parse_trace_status(row->status);
    if (!status)
      return fail(errc::invalid_input,
        fmt::format("{}: workload {}: status {} is none of a trace", target.name,
          excerpt(work.uuid), excerpt(row->status)));
    trace one;
    one.definition_name = target.def.name;
    one.work = work;
    one.solution_name = solution_name;
    auto& evaluation = one.evaluation.emplace();
    evaluation.status = *status;
    evaluation.environment.hardware = best.device;
    evaluation.environment.libs = {{"gristmill", run.version}};
    if (!run.toolchain.empty())
      evaluation.environment.libs.emplace_back("toolchain", run.toolchain);
    evaluation.timestamp = iso_time(best.wall);
    evaluation.log =
      modelled ? fmt::format("Times are {}; nothing was measured.", run.time_note) : run.time_note;
    if (has_correctness(*status)) {
      auto& correctness = evaluation.correctness.emplace();
      correctness.max_absolute_error = row->max_absolute_error.value_or(0);
      correctness.max_relative_error = row->max_relative_error.value_or(0);
      correctness.extra = ordered_json{{"origin", modelled ? "MODELLED" : "MEASURED"}};
      if (!row->max_absolute_error)
        correctness.extra["errors"] = "not in the log";
      if (row->shrunken)
        correctness.extra["checked_on"] = "a smaller twin of the workload";
    }
    if (has_performance(*status)) {
      auto& performance = evaluation.performance.emplace();
      performance.latency_ms = static_cast<double>(row->time_ns) / 1e6;
      // The reference was not timed; T_b is another kernel's time and stands in the tables.
      if (evaluation.correctness && row->baseline_ns > 0)
        evaluation.correctness->extra["baseline_ms"] = static_cast<double>(row->baseline_ns) / 1e6;
    }
    if (auto checked = check_trace(one); !checked)
      return fail(checked.error().code, target.name + ": " + checked.error().what);
    out.push_back(std::move(one));
  }
  return out;
}

bounds_table bounds_of(const run_winners& run, const std::string& run_name) {
  bounds_table out;
  out.source = "gristmill run " + run_name;
  int64_t latest = 0;
  bool modelled = false;
  for (const auto& best : run.problems) {
    if (best.hash.empty())
      continue;
    latest = std::max(latest, best.wall);
    modelled = modelled || is_modelled(best);
    out.device = best.device;
    bool is_whole = true;
    for (const auto& w : best.workloads)
      is_whole = is_whole && w.floor_ns > 0 && w.baseline_ns > 0;
    if (!is_whole)
      continue; // Without both times there is nothing to score against.
    out.order.push_back(best.definition_name);
    for (const auto& w : best.workloads)
      out.problems[best.definition_name][w.uuid] = {
        static_cast<double>(w.floor_ns), static_cast<double>(w.baseline_ns)};
  }
  out.date = iso_time(latest).substr(0, 10);
  out.clock = modelled ? run.time_note : "not recorded";
  out.t_sol_method = run.t_sol_method;
  out.t_b_method = run.t_b_method;
  return out;
}

} // namespace gristmill
