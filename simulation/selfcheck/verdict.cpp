#include "simulation/selfcheck/verdict.hpp"

#include "simulation/selfcheck/formulas.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Kolmogorov's limit distribution is above this with a chance of 0.001.
constexpr double rare_distance = 1.9495;

judged_line judge_every(const expected_line& line, const std::vector<double>& values) {
  judged_line out{line.name, line.rule, line.exact};
  const auto further = [&](double a, double b) {
    return line.rule == line_rule::exactly ? std::fabs(a - line.exact) < std::fabs(b - line.exact)
                                           : a < b;
  };
  out.estimate = *std::max_element(values.begin(), values.end(), further);
  const bool holds =
    line.rule == line_rule::exactly ? out.estimate == line.exact : out.estimate <= line.exact;
  out.verdict = holds ? line_verdict::pass : line_verdict::off;
  return out;
}

} // namespace

std::string to_string(line_verdict what) {
  switch (what) {
  case line_verdict::pass:
    return "pass";
  case line_verdict::off:
    return "OFF";
  case line_verdict::too_noisy:
    return "TOO NOISY";
  case line_verdict::no_number:
    return "NO NUMBER";
  }
  return "?";
}

judged_line judge(const expected_line& line, const std::vector<double>& values) {
  judged_line out{line.name, line.rule, line.exact};
  if (values.empty()
    || !std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
    out.estimate = std::nan("");
    return out;
  }
  if (line.rule == line_rule::at_most || line.rule == line_rule::exactly)
    return judge_every(line, values);
  const double count = double(values.size());
  double sum = 0;
  for (const double v : values)
    sum += v;
  out.estimate = sum / count;
  double squares = 0;
  for (const double v : values)
    squares += (v - out.estimate) * (v - out.estimate);
  // One seed says nothing of the noise.
  out.standard_error = count > 1 ? std::sqrt(squares / (count - 1) / count) : INFINITY;
  const double size = std::fabs(line.exact);
  out.tolerance = std::max(standard_errors_max * out.standard_error, tolerance_min * size);
  const double over =
    line.rule == line_rule::estimate ? std::fabs(out.deviation()) : out.deviation();
  if (!(over <= out.tolerance))
    out.verdict = line_verdict::off;
  else
    out.verdict =
      out.standard_error <= noise_max * size ? line_verdict::pass : line_verdict::too_noisy;
  return out;
}

judged_line judge_distribution(
  const std::function<double(double)>& distribution, std::vector<double> sample) {
  judged_line out;
  out.name = fmt::format("distance of the distributions (KS, {} draws)", sample.size());
  out.rule = line_rule::at_most;
  if (sample.empty()
    || !std::all_of(sample.begin(), sample.end(), [](double v) { return std::isfinite(v); })) {
    out.estimate = std::nan("");
    return out;
  }
  std::sort(sample.begin(), sample.end());
  out.exact = rare_distance / std::sqrt(double(sample.size()));
  out.estimate = kolmogorov_distance(sample, distribution);
  // Few draws could not tell a wrong distribution: as noisy as an estimate with a large error.
  if (out.exact > 2 * noise_max)
    out.verdict = line_verdict::too_noisy;
  else
    out.verdict = out.estimate <= out.exact ? line_verdict::pass : line_verdict::off;
  return out;
}

} // namespace gristmill
