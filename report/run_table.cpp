#include "report/run_table.hpp"

#include "messages/attempt.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace gristmill {

namespace {

using nlohmann::json;

/// A problem while its events are read.
struct gathered {
  problem_row row;
  bool prepared = false;
  std::string prepared_status;
  bool has_search_verdict = false;
  bool has_passed_candidate = false;
  std::string last_failure;
};

/// A library that reads numbers takes -1 for a huge count and `true` for 1; a log is not given
/// that.
uint64_t count_in(const json& data, const char* key) {
  const auto& value = data.at(key);
  if (!value.is_number_unsigned())
    throw json::type_error::create(
      302, std::string(key) + " must be a whole number of 0 or more", &value);
  return value.get<uint64_t>();
}

double real_in(const json& data, const char* key) {
  const auto& value = data.at(key);
  if (!value.is_number())
    throw json::type_error::create(302, std::string(key) + " must be a number", &value);
  return value.get<double>();
}

/// Geometric mean of the workloads' T_b; 0 when one has none.
uint64_t baseline_of(const json& workloads) {
  std::vector<double> times;
  for (const auto& w : workloads) {
    auto t = w.contains("baseline_ns") ? count_in(w, "baseline_ns") : 0;
    if (t == 0)
      return 0;
    times.push_back(static_cast<double>(t));
  }
  auto mean = geomean(times);
  return mean ? static_cast<uint64_t>(std::llround(*mean)) : 0;
}

std::string limits_of(const json& workloads) {
  std::map<std::string, uint32_t> count;
  for (const auto& w : workloads)
    if (auto bound = w.value("bound", std::string{}); !bound.empty())
      ++count[bound];
  std::vector<std::pair<std::string, uint32_t>> by_count(count.begin(), count.end());
  std::stable_sort(by_count.begin(), by_count.end(),
    [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, n] : by_count) {
    if (!text.empty())
      text += ", ";
    text += name + " " + std::to_string(n) + "/" + std::to_string(workloads.size());
  }
  return text;
}

/// T_SOL / T on the workload with the largest floor. Small workloads are ruled by the cost of a
/// launch, so a mean over all of them would say little about the kernel.
double floor_share_of(const json& workloads) {
  uint64_t largest = 0;
  double share = 0;
  for (const auto& w : workloads) {
    auto floor = w.contains("floor_ns") ? count_in(w, "floor_ns") : 0;
    auto time = w.contains("time_ns") ? count_in(w, "time_ns") : 0;
    if (floor > largest && time > 0) {
      largest = floor;
      share = static_cast<double>(floor) / static_cast<double>(time);
    }
  }
  return share;
}

void take_verdict(gathered& g, const event& e, const json& data) {
  auto kind = data.at("kind").get<std::string>();
  auto status = data.at("status").get<std::string>();
  bool passed = status == to_string(verdict_status::passed);
  auto objective = count_in(data, "objective_ns");
  if (kind != "baseline") {
    g.has_search_verdict = true;
    if (passed)
      g.has_passed_candidate = true;
    else
      g.last_failure = status;
  } else if (passed) {
    g.row.baseline_ns = objective;
  }
  if (g.row.baseline_ns == 0) // T_b of a bounds table: nobody measures a baseline then.
    g.row.baseline_ns = baseline_of(data.at("workloads"));
  if (!passed || objective == 0 || data.value("incumbent_stays", false))
    return;
  // A promotion has compared the two side by side; the time of the one before is of another day.
  const bool promoted = data.value("promotion", false);
  if (kind == "baseline" ? g.row.best_ns == 0
                         : promoted || g.row.best_ns == 0 || objective < g.row.best_ns) {
    g.row.best_ns = objective;
    g.row.speedup = real_in(data, "speedup");
    g.row.floor_share = floor_share_of(data.at("workloads"));
    g.row.sol_score = real_in(data, "sol_score");
    g.row.limited_by = limits_of(data.at("workloads"));
    g.row.best_candidate = e.candidate;
    g.row.best_key = data.value("key", std::string{});
  }
}

void take_attempt(run_table& table, gathered& g, const event& e, const json& data) {
  auto kind = data.at("kind").get<std::string>();
  auto gpu_ns = count_in(data, "gpu_ns");
  auto outcome = data.at("outcome").get<std::string>();
  g.row.gpu_ns += gpu_ns;
  table.gpu_ns += gpu_ns;
  const bool unproposed = outcome == to_string(attempt_outcome::unproposed);
  if (kind != "baseline" && (outcome == "judged" || unproposed)) {
    ++g.row.attempts;
    ++table.attempts;
    table.unproposed += unproposed ? 1 : 0;
  }
  if (kind != "planted")
    return;
  planted_row row{
    e.problem, data.value("key", std::string{}), data.value("status", outcome), e.reason};
  // A re-run replaces the verdict that a bad GPU had given.
  auto old = data.contains("rerun_of") ? std::find_if(table.planted.begin(), table.planted.end(),
               [&](const planted_row& r) { return r.problem == row.problem && r.key == row.key; })
                                       : table.planted.end();
  if (old != table.planted.end())
    *old = std::move(row);
  else
    table.planted.push_back(std::move(row));
}

std::string status_of(const gathered& g) {
  if (g.prepared && g.prepared_status != to_string(verdict_status::passed))
    return g.prepared_status;
  if (g.has_passed_candidate)
    return to_string(verdict_status::passed);
  if (g.has_search_verdict)
    return g.last_failure;
  if (g.row.baseline_ns != 0)
    return "no candidate";
  if (g.row.reason.empty())
    return g.prepared ? "no verdict" : "not prepared";
  return g.row.reason.find("baseline failed") != std::string::npos ? "baseline failed"
                                                                   : "no candidate";
}

void take(run_table& table, std::map<std::string, gathered>& problems,
  std::set<std::string>& gpus_seen, const event& e) {
  auto data = json::parse(e.data);
  if (!data.is_object())
    throw json::type_error::create(302, "it must be an object", &data);
  if (e.kind == "run_started") {
    table.gpus = data.at("gpus").get<std::string>();
    table.toolchain = data.value("toolchain", std::string{});
    table.time_note = data.at("time_note").get<std::string>();
    table.baseline_note = data.value("baseline_note", std::string{});
    table.seed = count_in(data, "seed");
    table.seed_given = data.value("seed_given", false);
    if (const auto skipped = data.find("skipped"); skipped != data.end())
      for (const auto& one : *skipped)
        table.skipped.push_back(
          {one.at("problem").get<std::string>(), one.at("reason").get<std::string>()});
    for (const auto& name : data.at("problems"))
      problems[name.get<std::string>()].row.name = name.get<std::string>();
    return;
  }
  if (e.kind == "run_resumed") { // What ended before has gone on.
    table.ended = false;
    table.clean = false;
    table.end_reason.clear();
    return;
  }
  if (e.kind == "run_ended") {
    table.ended = true;
    table.clean = data.value("clean", false);
    table.end_reason = e.reason;
    return;
  }
  count_model_call(table.models, e);
  if (e.kind == "gpu_up")
    gpus_seen.insert(e.gpu);
  auto found = problems.find(e.problem);
  if (found == problems.end())
    return; // About the run, or of a kind that this build does not know.
  auto& g = found->second;
  if (e.kind == "problem_prepared") {
    g.prepared = true;
    g.prepared_status = data.at("status").get<std::string>();
    if (g.prepared_status != to_string(verdict_status::passed))
      g.row.reason = e.reason;
  } else if (e.kind == "verdict") {
    take_verdict(g, e, data);
  } else if (e.kind == "attempt_finished") {
    take_attempt(table, g, e, data);
  } else if (e.kind == "problem_finished") {
    g.row.reason = e.reason;
  }
}

} // namespace

result<run_table> make_run_table(std::span<const event> events) {
  if (events.empty() || events.front().kind != "run_started")
    return fail(errc::invalid_input, "the log does not begin with a run_started event");
  run_table table;
  std::map<std::string, gathered> problems;
  std::set<std::string> gpus_seen;
  for (const auto& e : events) {
    table.wall_ns =
      std::max(table.wall_ns, static_cast<uint64_t>(std::max<int64_t>(e.t.count(), 0)));
    try {
      take(table, problems, gpus_seen, e);
    } catch (const json::exception& error) {
      return fail(errc::invalid_input,
        "event " + std::to_string(e.seq) + " (" + e.kind
          + "): its data is not what this kind has: " + error.what());
    }
  }
  table.gpu_count = gpus_seen.size();
  std::vector<problem_outcome> outcomes;
  for (auto& [name, g] : problems) {
    g.row.status = status_of(g);
    problem_outcome o;
    o.passed = g.has_passed_candidate;
    o.has_baseline = g.row.baseline_ns != 0;
    o.sol_score = g.row.best_ns != 0 ? g.row.sol_score : 0;
    o.speedup = g.row.speedup;
    if (o.passed && !(o.speedup > 0))
      o.has_baseline = false; // Nothing to compare with.
    outcomes.push_back(o);
    table.problems.push_back(g.row);
  }
  auto summary = summarise(outcomes);
  if (!summary)
    return pass(summary);
  table.summary = *summary;
  return table;
}

} // namespace gristmill
