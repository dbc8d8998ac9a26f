#include "simulation/report/lab_row.hpp"

#include "simulation/report/lab_metrics.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <tuple>

namespace gristmill {

namespace {

/// The columns of a result before its metrics, apart from those of the grid.
constexpr size_t fixed_columns = 9;

template <class Number>
bool read_number(const std::string& text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

} // namespace

lab_row row_of(size_t variant, uint64_t seed, const lab_result& run) {
  lab_row out;
  out.variant = variant;
  out.seed = seed;
  out.digest = run.digest;
  out.transitions = run.transitions;
  for (const auto& metric : own_metrics())
    out.values.push_back(metric.of(run));
  out.curve = run.curve;
  out.points = run.curve.size();
  for (double t : wait_grid())
    out.wait_shares.push_back(run.waits.share_up_to(t));
  return out;
}

void sort_rows(std::vector<lab_row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const lab_row& a, const lab_row& b) {
    return std::tie(a.variant, a.seed) < std::tie(b.variant, b.seed);
  });
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string csv_number(double value) {
  return fmt::format("{}", value);
}

result<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      out.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  if (quoted)
    return fail(errc::invalid_input, "a quote is not closed");
  return out;
}

std::string results_head(const lab_plan& plan) {
  std::string out = "variant";
  for (const auto& [key, value] : plan.points.front())
    out += "," + csv_field(key);
  out += ",policy,planner,bound,seed,config,digest,transitions,points";
  for (const auto& metric : own_metrics())
    out += "," + std::string(metric.key);
  return out + "\n";
}

std::string results_line(const lab_plan& plan, const lab_row& row) {
  const auto& v = plan.variants[row.variant];
  std::string out = fmt::format("{}", row.variant);
  for (const auto& [key, value] : plan.points[v.point])
    out += "," + csv_field(value);
  out += fmt::format(",{},{},{},{},{},{},{},{}", csv_field(v.what.lease_policy),
    csv_field(v.what.planner), v.is_bound ? "yes" : "no", row.seed, v.config, row.digest,
    row.transitions, row.points);
  for (double value : row.values)
    out += "," + csv_number(value);
  return out + "\n";
}

result<lab_row> row_from_results(const lab_plan& plan, std::string_view line) {
  auto fields = csv_fields(line);
  if (!fields)
    return pass(fields);
  const size_t grid = plan.points.front().size();
  const auto& metrics = own_metrics();
  if (fields->size() != fixed_columns + grid + metrics.size())
    return fail(errc::invalid_input,
      fmt::format(
        "{} fields in place of {}", fields->size(), fixed_columns + grid + metrics.size()));
  const auto field = [&](size_t i) -> const std::string& { return (*fields)[grid + i]; };
  lab_row row;
  uint64_t variant = 0;
  if (!read_number(fields->front(), variant) || variant >= plan.variants.size())
    return fail(errc::invalid_input, "variant " + fields->front() + " is none of this sweep");
  row.variant = variant;
  if (!read_number(field(4), row.seed) || row.seed < plan.first_seed
    || row.seed - plan.first_seed >= plan.seeds)
    return fail(errc::invalid_input, "seed " + field(4) + " is none of this sweep");
  if (field(5) != plan.variants[variant].config)
    return fail(errc::invalid_input,
      fmt::format("configuration {} of variant {} is not that of this sweep, {}", field(5), variant,
        plan.variants[variant].config));
  row.digest = field(6);
  if (!read_number(field(7), row.transitions))
    return fail(errc::invalid_input, "transitions " + field(7) + " is no number");
  if (!read_number(field(8), row.points))
    return fail(errc::invalid_input, "points " + field(8) + " is no number");
  for (size_t m = 0; m < metrics.size(); ++m) {
    double value = 0;
    if (!read_number(field(fixed_columns + m), value))
      return fail(errc::invalid_input,
        fmt::format("{} {} is no number", metrics[m].key, field(fixed_columns + m)));
    row.values.push_back(value);
  }
  return row;
}

std::string curve_head() {
  return "variant,seed,time_s,gpu_hours,geomean,wins,above_two,median_sol\n";
}

std::string curve_lines(const lab_row& row) {
  std::string out;
  for (const auto& p : row.curve)
    out += fmt::format("{},{},{},{},{},{},{},{}\n", row.variant, row.seed, p.time_s, p.gpu_hours,
      p.geomean, p.wins, p.above_two, p.median_sol);
  return out;
}

std::string waits_head() {
  return "variant,seed,wait_s,share\n";
}

std::string waits_lines(const lab_row& row) {
  std::string out;
  for (size_t i = 0; i < row.wait_shares.size(); ++i)
    out += fmt::format("{},{},{},{}\n", row.variant, row.seed, wait_grid()[i], row.wait_shares[i]);
  return out;
}

} // namespace gristmill
