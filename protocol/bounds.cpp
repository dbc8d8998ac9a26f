#include "protocol/bounds.hpp"

#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr std::string_view schema = "gristmill.bounds/1";

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

} // namespace

const workload_bounds* bounds_table::find(
  const std::string& problem_name, const std::string& uuid) const {
  const auto workloads = problems.find(problem_name);
  if (workloads == problems.end())
    return nullptr;
  const auto found = workloads->second.find(uuid);
  return found == workloads->second.end() ? nullptr : &found->second;
}

result<bounds_table> parse_bounds(std::string_view text, const std::string& file_name) {
  auto document = parse_json(text, file_name);
  if (!document)
    return pass(document);
  if (!document->is_object())
    return fail(errc::invalid_input,
      fmt::format("{}: must be an object, not {}", file_name, kind_text(*document)));
  field_reader fields;
  bounds_table out;
  const auto found_schema = fields.text(*document, "", "schema", need::required);
  if (!found_schema.empty() && found_schema != schema)
    fields.error("schema",
      fmt::format(
        "{} is not the schema of a bounds table; expected `{}`", excerpt(found_schema), schema));
  out.source = fields.text(*document, "", "source", need::required);
  out.date = fields.text(*document, "", "date", need::required);
  if (!out.date.empty() && !is_date(out.date))
    fields.error("date", fmt::format("{} is not a date of the form YYYY-MM-DD", excerpt(out.date)));
  out.device = fields.text(*document, "", "device", need::required);
  refuse_others(*document, "", {"schema", "source", "date", "device", "problems"}, fields);
  if (const auto* problems = fields.object(*document, "", "problems")) {
    for (const auto& [problem_name, workloads] : problems->items()) {
      const auto path = join_path("problems", problem_name);
      if (!workloads.is_object()) {
        fields.error(path, fmt::format("must be an object, not {}", kind_text(workloads)));
        continue;
      }
      for (const auto& [uuid, times] : workloads.items()) {
        const auto row = join_path(path, uuid);
        if (!times.is_object()) {
          fields.error(row, fmt::format("must be an object, not {}", kind_text(times)));
          continue;
        }
        out.problems[problem_name][uuid] = {
          read_time(times, row, "t_sol_ns", fields), read_time(times, row, "t_b_ns", fields)};
        refuse_others(times, row, {"t_sol_ns", "t_b_ns"}, fields);
      }
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

} // namespace gristmill
