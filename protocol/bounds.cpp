#include "protocol/bounds.hpp"

#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr std::string_view schema_1 = "gristmill.bounds/1";
constexpr std::string_view schema_2 = "gristmill.bounds/2";
constexpr std::string_view schema_3 = "gristmill.bounds/3";

/// Unlike the interchange files, a file of ours allows no unknown key.
void refuse_others(const ordered_json& object, std::string_view path,
  const std::vector<std::string>& known, field_reader& fields) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fields.error(join_path(path, key), "unknown key" + suggestion(key, known));
}

double read_time(
  const ordered_json& from, const std::string& path, const char* key, field_reader& fields) {
  const auto found = from.find(key);
  if (found != from.end() && found->is_number()) {
    const double value = found->get<double>();
    if (std::isfinite(value) && value > 0)
      return value;
  }
  fields.error(join_path(path, key), "a positive number of nanoseconds is required");
  return 0;
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-')
    return false;
  for (size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
    if (text[i] < '0' || text[i] > '9')
      return false;
  return true;
}

/// T_b is the winner's median and nothing else, or the table would contradict itself.
void read_workload_baseline(const ordered_json& times, const std::string& row, double t_b_ns,
  baseline_record& out, field_reader& fields) {
  const auto found = times.find("baseline");
  const auto path = join_path(row, "baseline");
  if (found == times.end()) {
    fields.error(path, "is missing");
    return;
  }
  out = read_baseline(*found, path, fields);
  const auto* winner = out.find(out.winner);
  if (winner && winner->device && winner->counted().median != t_b_ns)
    fields.error(join_path(row, "t_b_ns"),
      fmt::format(
        "is {} but the winner `{}` took {}", t_b_ns, out.winner, winner->counted().median));
  for (const auto& mode : out.modes)
    if (winner && winner->device && mode.device && mode.counted().median < winner->counted().median)
      fields.error(join_path(path, "winner"),
        fmt::format("`{}` is faster than the winner `{}`", mode.name, out.winner));
}

void read_workloads(const ordered_json& from, const std::string& path,
  const std::string& problem_name, bounds_table& out, bool is_3, field_reader& fields) {
  if (!from.is_object()) {
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
    return;
  }
  auto& rows = out.problems[problem_name];
  for (const auto& [uuid, times] : from.items()) {
    const auto row = join_path(path, uuid);
    if (!times.is_object()) {
      fields.error(row, fmt::format("must be an object, not {}", kind_text(times)));
      continue;
    }
    rows[uuid] = {
      read_time(times, row, "t_sol_ns", fields), read_time(times, row, "t_b_ns", fields)};
    if (!is_3) {
      refuse_others(times, row, {"t_sol_ns", "t_b_ns"}, fields);
      continue;
    }
    read_workload_baseline(
      times, row, rows[uuid].t_b_ns, out.baselines[problem_name][uuid], fields);
    refuse_others(times, row, {"t_sol_ns", "t_b_ns", "baseline"}, fields);
  }
}

/// A problem of schema 2 or 3.
void read_problem(const ordered_json& from, const std::string& path,
  const std::string& problem_name, bounds_table& out, bool is_3, field_reader& fields) {
  if (!from.is_object()) {
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
    return;
  }
  refuse_others(from, path, {"category", "sol_is_dummy", "workloads"}, fields);
  if (const auto category = fields.text(from, path, "category", need::optional); !category.empty())
    out.categories[problem_name] = category;
  if (const auto dummy = from.find("sol_is_dummy"); dummy != from.end()) {
    if (!dummy->is_boolean())
      fields.error(join_path(path, "sol_is_dummy"), "must be true or false");
    else if (dummy->get<bool>())
      fields.error(join_path(path, "sol_is_dummy"),
        "this problem's bound is a placeholder, and no score rests on one");
  }
  const auto workloads = from.find("workloads");
  if (workloads == from.end())
    fields.error(join_path(path, "workloads"), "is missing");
  else
    read_workloads(*workloads, join_path(path, "workloads"), problem_name, out, is_3, fields);
}

void read_provenance(const ordered_json& document, bounds_table& out, field_reader& fields) {
  const auto* from = fields.object(document, "", "provenance");
  if (from == nullptr)
    return;
  for (const auto& [what, words] : from->items()) {
    if (words.is_string())
      out.provenance.emplace_back(what, words.get<std::string>());
    else
      fields.error(join_path("provenance", what), "must be a text");
  }
  if (out.provenance.empty())
    fields.error("provenance", "says nothing");
}

} // namespace

const baseline_record* bounds_table::find_baseline(
  const std::string& problem_name, const std::string& uuid) const {
  const auto workloads = baselines.find(problem_name);
  if (workloads == baselines.end())
    return nullptr;
  const auto found = workloads->second.find(uuid);
  return found == workloads->second.end() ? nullptr : &found->second;
}

const workload_bounds* bounds_table::find(
  const std::string& problem_name, const std::string& uuid) const {
  const auto workloads = problems.find(problem_name);
  if (workloads == problems.end())
    return nullptr;
  const auto found = workloads->second.find(uuid);
  return found == workloads->second.end() ? nullptr : &found->second;
}

result<bounds_table> parse_bounds(std::string_view text, const std::string& file_name) {
  json_limits limits;
  limits.unique_keys = true; // Two rows for one workload: nobody could say which counts.
  auto document = parse_json_object(text, file_name, limits);
  if (!document)
    return pass(document);
  field_reader fields;
  bounds_table out;
  const auto schema = fields.text(*document, "", "schema", need::required);
  const bool is_2 = schema == schema_2;
  const bool is_3 = schema == schema_3;
  if (!schema.empty() && !is_2 && !is_3 && schema != schema_1)
    fields.error("schema",
      fmt::format("{} is not the schema of a bounds table; expected `{}`, `{}` or `{}`",
        excerpt(schema), schema_3, schema_2, schema_1));
  out.source = fields.text(*document, "", "source", need::required);
  out.date = fields.text(*document, "", "date", need::required);
  if (!out.date.empty() && !is_date(out.date))
    fields.error("date", fmt::format("{} is not a date of the form YYYY-MM-DD", excerpt(out.date)));
  out.device = fields.text(*document, "", "device", need::required);
  if (is_2 || is_3) {
    out.clock = fields.text(*document, "", "clock", need::required);
    out.t_sol_method = fields.text(*document, "", "t_sol_method", need::optional);
    out.t_b_method = fields.text(*document, "", "t_b_method", need::optional);
    std::vector<std::string> known{
      "schema", "source", "date", "device", "clock", "t_sol_method", "t_b_method", "problems"};
    if (is_3) {
      read_provenance(*document, out, fields);
      known.emplace_back("provenance");
    }
    refuse_others(*document, "", known, fields);
  } else {
    refuse_others(*document, "", {"schema", "source", "date", "device", "problems"}, fields);
  }
  if (const auto* problems = fields.object(*document, "", "problems")) {
    for (const auto& [problem_name, from] : problems->items()) {
      const auto path = join_path("problems", problem_name);
      out.order.push_back(problem_name);
      if (is_2 || is_3)
        read_problem(from, path, problem_name, out, is_3, fields);
      else
        read_workloads(from, path, problem_name, out, false, fields);
    }
  }
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name));
  return out;
}

result<bounds_table> load_bounds(const std::filesystem::path& file) {
  auto text = read_text_file(file, json_limits{}.bytes);
  if (!text)
    return pass(text);
  return parse_bounds(*text, file.string());
}

std::string to_json(const bounds_table& table) {
  const bool is_3 = !table.provenance.empty();
  ordered_json out{{"schema", is_3 ? schema_3 : schema_2}, {"source", table.source},
    {"date", table.date}, {"device", table.device}, {"clock", table.clock}};
  if (!table.t_sol_method.empty())
    out["t_sol_method"] = table.t_sol_method;
  if (!table.t_b_method.empty())
    out["t_b_method"] = table.t_b_method;
  for (const auto& [what, words] : table.provenance)
    out["provenance"][what] = words;
  auto& problems = out["problems"] = ordered_json::object();
  for (const auto& problem_name : table.order) {
    auto& one = problems[problem_name] = ordered_json::object();
    if (const auto category = table.categories.find(problem_name);
        category != table.categories.end())
      one["category"] = category->second;
    auto& workloads = one["workloads"] = ordered_json::object();
    if (const auto rows = table.problems.find(problem_name); rows != table.problems.end())
      for (const auto& [uuid, times] : rows->second) {
        workloads[uuid] = {{"t_sol_ns", times.t_sol_ns}, {"t_b_ns", times.t_b_ns}};
        if (const auto* record = table.find_baseline(problem_name, uuid); is_3 && record)
          workloads[uuid]["baseline"] = to_json(*record);
      }
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

} // namespace gristmill
