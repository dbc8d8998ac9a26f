#include "simulation/report/lab_text.hpp"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using nlohmann::ordered_json;

/// JSON has no infinity.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json cells_json(const lab_summary& summary, const std::vector<summary_cell>& cells,
  const std::vector<lab_verdict>* verdicts) {
  ordered_json out = ordered_json::object();
  for (size_t m = 0; m < cells.size(); ++m) {
    const auto& cell = cells[m];
    if (!cell.applies)
      continue;
    ordered_json one = {{"mean", cell.has_mean() ? number(cell.over.mean) : ordered_json(nullptr)},
      {"half", cell.has_interval() ? number(cell.over.half) : ordered_json(nullptr)},
      {"deviation", cell.has_interval() ? number(cell.over.deviation) : ordered_json(nullptr)},
      {"seeds", cell.over.count}, {"without_value", cell.never}};
    if (verdicts != nullptr)
      one["verdict"] = to_string((*verdicts)[m]);
    out[summary.metrics[m].key] = std::move(one);
  }
  return out;
}

ordered_json point_json(const grid_point& point) {
  ordered_json out = ordered_json::object();
  for (const auto& [key, value] : point)
    out[key] = value;
  return out;
}

/// "12,half,…" of a cell.
std::string cell_fields(const summary_cell& cell) {
  return fmt::format("{},{},{},{},{}", cell.has_mean() ? csv_number(cell.over.mean) : "",
    cell.has_interval() ? csv_number(cell.over.half) : "",
    cell.has_interval() ? csv_number(cell.over.deviation) : "", cell.over.count, cell.never);
}

std::string variant_fields(const lab_plan& plan, size_t v) {
  const auto& variant = plan.variants[v];
  std::string out = fmt::format("{}", v);
  for (const auto& [key, value] : plan.points[variant.point])
    out += "," + csv_field(value);
  return out + "," + csv_field(variant.what.lease_policy) + "," + csv_field(variant.what.planner);
}

std::string variant_head(const lab_plan& plan, const std::string& prefix) {
  std::string out = prefix + "variant";
  for (const auto& [key, value] : plan.points.front())
    out += "," + csv_field(prefix + key);
  return out + "," + prefix + "policy," + prefix + "planner";
}

} // namespace

std::string to_json(const lab_plan& plan, const lab_summary& summary,
  const std::vector<lab_row>& rows, const lab_identity& who) {
  ordered_json out;
  out["schema"] = "gristmill.lab/1";
  out["simulated"] = true;
  out["version"] = who.version;
  out["build"] = who.build;
  out["engine"] = to_string(plan.engine);
  out["scenario"] = plan.name;
  out["plan"] = plan.hash();
  out["first_seed"] = plan.first_seed;
  out["seeds"] = plan.seeds;
  out["variants"] = ordered_json::array();
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const auto& variant = plan.variants[v];
    ordered_json one;
    one["grid"] = point_json(plan.points[variant.point]);
    one["policy"] = variant.what.lease_policy;
    one["planner"] =
      variant.what.problems > 0 ? ordered_json(variant.what.planner) : ordered_json(nullptr);
    one["bound"] = variant.is_bound;
    one["baseline"] = plan.baselines[variant.point] == v;
    one["config"] = variant.config;
    one["digest"] = summary.variants[v].digest;
    one["transitions"] = summary.variants[v].transitions;
    one["metrics"] = cells_json(summary, summary.variants[v].cells, nullptr);
    one["runs"] = ordered_json::array();
    for (const auto& row : rows)
      if (row.variant == v)
        one["runs"].push_back(
          {{"seed", row.seed}, {"digest", row.digest}, {"transitions", row.transitions}});
    out["variants"].push_back(std::move(one));
  }
  out["differences"] = ordered_json::array();
  for (const auto& d : summary.differences)
    out["differences"].push_back({{"variant", d.variant}, {"baseline", d.baseline},
      {"metrics", cells_json(summary, d.cells, &d.verdicts)}});
  return out.dump(2) + "\n";
}

std::string summary_csv(const lab_plan& plan, const lab_summary& summary) {
  std::string out = variant_head(plan, "") + ",metric,mean,half,deviation,seeds,without_value\n";
  for (size_t v = 0; v < plan.variants.size(); ++v)
    for (size_t m = 0; m < summary.metrics.size(); ++m)
      if (summary.variants[v].cells[m].applies)
        out += fmt::format("{},{},{}\n", variant_fields(plan, v), summary.metrics[m].key,
          cell_fields(summary.variants[v].cells[m]));
  return out;
}

std::string differences_csv(const lab_plan& plan, const lab_summary& summary) {
  std::string out = variant_head(plan, "") + "," + variant_head(plan, "baseline_")
    + ",metric,mean,half,deviation,seeds,without_value,verdict\n";
  for (const auto& d : summary.differences)
    for (size_t m = 0; m < summary.metrics.size(); ++m)
      if (d.cells[m].applies)
        out += fmt::format("{},{},{},{},{}\n", variant_fields(plan, d.variant),
          variant_fields(plan, d.baseline), summary.metrics[m].key, cell_fields(d.cells[m]),
          to_string(d.verdicts[m]));
  return out;
}

} // namespace gristmill
