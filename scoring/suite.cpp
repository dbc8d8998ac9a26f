#include "scoring/suite.hpp"

#include "scoring/score.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool is_time(double t) {
  return std::isfinite(t) && t > 0;
}

/// The derivatives of the formula (specification 7.1), each for one per cent of its time.
void add_sensitivities(workload_score& out) {
  const double k = out.from.t_k;
  const double b = out.from.t_b;
  const double sol = out.from.t_sol;
  const double denominator = b + k - 2 * sol;
  if (b <= sol || k < sol || !(denominator > 0))
    return; // A step, not a curve.
  const double square = denominator * denominator;
  out.per_cent_of_t_sol = (b - k) / square * sol / 100;
  out.per_cent_of_t_b = (k - sol) / square * b / 100;
  out.per_cent_of_t_k = -(b - sol) / square * k / 100;
}

result<problem_score> score_problem(const timed_problem& given) {
  problem_score out;
  out.name = given.name;
  out.category = given.category;
  out.total = static_cast<uint32_t>(given.workloads.size());
  if (given.workloads.empty())
    return fail(errc::invalid_input,
      fmt::format("{}: there is no workload, so there is no score", given.name));
  std::vector<double> scores;
  std::vector<double> speedups;
  std::vector<double> times;
  for (const auto& work : given.workloads) {
    auto one = score_workload(work);
    if (!one)
      return fail(one.error().code, fmt::format("{}: {}", given.name, one.error().what));
    scores.push_back(one->score);
    speedups.push_back(one->speedup);
    if (work.passed)
      times.push_back(work.t_k);
    out.passed += work.passed ? 1 : 0;
    out.missing += work.status.empty() ? 1 : 0;
    out.need_audit += one->needs_audit ? 1 : 0;
    out.close += one->is_close ? 1 : 0;
    out.faster += one->speedup > 1 ? 1 : 0;
    out.workloads.push_back(std::move(*one));
  }
  out.score_mean = *mean(scores);
  out.score_median = *median(scores);
  out.speedup_mean = *mean(speedups);
  out.speedup_geomean = *geomean(speedups);
  if (out.passed == out.total)
    out.latency_geomean = *geomean(times);
  return out;
}

group_score score_group(const std::string& name, const std::vector<const problem_score*>& members) {
  group_score out;
  out.name = name;
  out.problems = static_cast<uint32_t>(members.size());
  std::vector<double> scores;
  std::vector<double> speedups;
  for (const auto* p : members) {
    scores.push_back(p->score_mean);
    speedups.push_back(p->speedup_geomean);
    out.passed += p->passed == p->total ? 1 : 0;
    out.workloads += p->total;
    out.workloads_passed += p->passed;
    out.need_audit += p->need_audit;
    out.faster += p->speedup_geomean > 1 ? 1 : 0;
  }
  out.score_mean = *mean(scores);
  out.score_median = *median(scores);
  out.speedup_geomean = *geomean(speedups);
  return out;
}

} // namespace

result<workload_score> score_workload(const timed_workload& given) {
  workload_score out;
  out.from = given;
  const auto refuse = [&](const char* name, double t) {
    return fail(errc::invalid_input,
      fmt::format(
        "workload {}: {} is {} ns; a positive finite time is needed", given.uuid, name, t));
  };
  if (!is_time(given.t_b))
    return refuse("T_b", given.t_b);
  if (!is_time(given.t_sol))
    return refuse("T_SOL", given.t_sol);
  if (given.passed && !is_time(given.t_k))
    return refuse("T_k", given.t_k);
  out.headroom = given.t_b / given.t_sol;
  out.is_close = out.headroom < close_headroom;
  if (!given.passed)
    return out;
  auto value = sol_score(given.t_k, given.t_b, given.t_sol);
  if (!value)
    return fail(value.error().code, fmt::format("workload {}: {}", given.uuid, value.error().what));
  out.needs_audit = value->needs_audit && !given.audited;
  if (out.needs_audit)
    return out;
  // Below the bound there is no more to win than the bound itself.
  out.score = value->needs_audit ? 1 : value->value;
  out.speedup = given.t_b / given.t_k;
  add_sensitivities(out);
  return out;
}

result<suite_score> score_suite(std::vector<timed_problem> problems) {
  if (problems.empty())
    return fail(errc::invalid_input, "there is no problem, so there is no score");
  suite_score out;
  for (const auto& given : problems) {
    auto one = score_problem(given);
    if (!one)
      return pass(one);
    out.problems.push_back(std::move(*one));
  }
  std::vector<const problem_score*> all;
  std::vector<std::string> names;
  for (const auto& p : out.problems) {
    all.push_back(&p);
    if (std::find(names.begin(), names.end(), p.category) == names.end())
      names.push_back(p.category);
  }
  out.all = score_group("all", all);
  for (const auto& name : names) {
    std::vector<const problem_score*> members;
    for (const auto* p : all)
      if (p->category == name)
        members.push_back(p);
    out.categories.push_back(score_group(name, members));
  }
  return out;
}

} // namespace gristmill
