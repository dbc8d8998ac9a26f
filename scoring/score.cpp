#include "scoring/score.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

result<void> check_finite(std::span<const double> values, const char* name) {
  if (values.empty())
    return fail(errc::invalid_input, fmt::format("the {} of no values does not exist", name));
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(errc::invalid_input,
        fmt::format("value {} of {} for the {} is {}, not a finite number", i + 1, values.size(),
          name, values[i]));
  return {};
}

} // namespace

result<double> sol_formula(double t_k, double t_b, double t_sol) {
  if (!std::isfinite(t_k) || !std::isfinite(t_b) || !std::isfinite(t_sol))
    return fail(errc::invalid_input,
      fmt::format(
        "a time of the SOL score is not finite: t_k {}, t_b {}, t_sol {}", t_k, t_b, t_sol));
  if (t_b <= t_sol)
    return t_k <= t_sol ? 1.0 : 0.0;
  double denominator = 1 + (t_k - t_sol) / (t_b - t_sol);
  if (denominator == 0)
    return fail(errc::invalid_input,
      fmt::format("the SOL score has a pole at t_k = 2 t_sol - t_b: t_k {}, t_b {}, t_sol {}", t_k,
        t_b, t_sol));
  return 1 / denominator;
}

result<sol_value> sol_score(double t_k, double t_b, double t_sol) {
  const std::pair<const char*, double> times[] = {
    {"candidate (t_k)", t_k}, {"baseline (t_b)", t_b}, {"bound (t_sol)", t_sol}};
  for (auto [name, t] : times)
    if (!std::isfinite(t) || t <= 0)
      return fail(errc::invalid_input,
        fmt::format("the time of the {} is {}; a SOL score needs positive finite times", name, t));
  if (t_k < t_sol)
    return sol_value{0, true};
  auto value = sol_formula(t_k, t_b, t_sol);
  if (!value)
    return pass(value);
  return sol_value{*value, false};
}

result<double> geomean(std::span<const double> values) {
  if (auto ok = check_finite(values, "geometric mean"); !ok)
    return pass(ok);
  double sum = 0;
  for (double x : values) {
    if (x <= 0)
      return fail(errc::invalid_input,
        fmt::format("{} has no place in a geometric mean: every value must be positive", x));
    sum += std::log(x);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

result<double> mean(std::span<const double> values) {
  if (auto ok = check_finite(values, "mean"); !ok)
    return pass(ok);
  double sum = 0;
  for (double x : values)
    sum += x;
  return sum / static_cast<double>(values.size());
}

result<double> median(std::vector<double> values) {
  if (auto ok = check_finite(values, "median"); !ok)
    return pass(ok);
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  if (values.size() % 2 == 1)
    return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

result<suite_summary> summarise(std::span<const problem_outcome> problems) {
  suite_summary out;
  out.problems = static_cast<uint32_t>(problems.size());
  if (problems.empty())
    return out;
  std::vector<double> scores;
  std::vector<double> speedups;
  for (const auto& p : problems) {
    scores.push_back(p.passed ? p.sol_score : 0.0);
    out.passed_count += p.passed ? 1 : 0;
    if (!p.has_baseline)
      continue;
    speedups.push_back(p.passed ? p.speedup : 1.0);
    out.faster_count += speedups.back() > 1 ? 1 : 0;
    out.twice_as_fast_count += speedups.back() > 2 ? 1 : 0;
  }
  out.with_baseline = static_cast<uint32_t>(speedups.size());
  auto sol_mean = mean(scores);
  if (!sol_mean)
    return pass(sol_mean);
  out.sol_mean = *sol_mean;
  out.sol_median = *median(scores);
  if (!speedups.empty()) {
    auto all = geomean(speedups);
    if (!all)
      return pass(all);
    out.geomean_all = *all;
  }
  return out;
}

} // namespace gristmill
