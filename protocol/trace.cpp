#include "protocol/trace.hpp"

#include "protocol/emit.hpp"
#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"
#include "protocol/workload_reader.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr size_t log_bytes_max = size_t{5} << 20;
constexpr size_t line_bytes_max = size_t{64} << 20;
constexpr size_t file_bytes_max = size_t{1} << 30;

/// What a trace of each status holds, in the order of the enumeration.
struct status_row {
  std::string_view name;
  bool correctness;
  bool performance;
};
constexpr std::array<status_row, 9> statuses{{
  {"PASSED", true, true},
  {"INCORRECT_NUMERICAL", true, false},
  {"INCORRECT_SHAPE", false, false},
  {"INCORRECT_DTYPE", false, false},
  {"INVALID_REFERENCE", false, false},
  {"RUNTIME_ERROR", false, false},
  {"REWARD_HACK", false, false},
  {"COMPILE_ERROR", false, false},
  {"TIMEOUT", false, false},
}};

const status_row& row_of(trace_status status) {
  return statuses[static_cast<size_t>(status)];
}

/// Why the numbers do not go with the status; empty when they do.
std::string status_error(
  trace_status status, bool with_correctness, bool with_performance, const char*& field) {
  const auto& row = row_of(status);
  const auto wrong = [&](bool wanted) {
    return fmt::format(
      "must {} when the status is {}", wanted ? "be there" : "be absent", row.name);
  };
  field = "correctness";
  if (row.correctness != with_correctness)
    return wrong(row.correctness);
  field = "performance";
  return row.performance != with_performance ? wrong(row.performance) : std::string{};
}

void warn_infinite(const std::string& path, field_reader& fields) {
  fields.warn(path, fmt::format("{}: infinite, which strict JSON cannot hold", path));
}

/// True when the value or something in it is a number that JSON cannot hold.
bool has_non_finite(const ordered_json& value) {
  if (value.is_structured()) {
    for (const auto& each : value)
      if (has_non_finite(each))
        return true;
    return false;
  }
  return value.is_number_float() && !std::isfinite(value.get<double>());
}

double not_negative(
  const ordered_json& from, const std::string& path, const char* key, field_reader& fields) {
  const double value = fields.number(from, path, key, 0);
  if (value < 0)
    fields.error(join_path(path, key), fmt::format("must not be negative, but is {}", value));
  if (std::isinf(value))
    warn_infinite(join_path(path, key), fields);
  return value;
}

trace_environment read_environment(
  const ordered_json& document, std::string_view path, field_reader& fields) {
  trace_environment out;
  const auto* from = fields.object(document, path, "environment");
  if (from == nullptr)
    return out;
  const auto at = join_path(path, "environment");
  out.hardware = fields.text(*from, at, "hardware", need::required);
  if (from->contains("libs")) {
    if (const auto* libs = fields.object(*from, at, "libs")) {
      for (const auto& [library, version] : libs->items()) {
        if (version.is_string())
          out.libs.emplace_back(library, version.get<std::string>());
        else
          fields.error(join_path(join_path(at, "libs"), library),
            fmt::format("must be a string, not {}", kind_text(version)));
      }
    }
  }
  fields.ignore_others(*from, at, {"hardware", "libs"});
  return out;
}

bool is_there(const ordered_json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && !found->is_null();
}

std::optional<trace_correctness> read_correctness(
  const ordered_json& document, std::string_view path, field_reader& fields) {
  if (!is_there(document, "correctness"))
    return std::nullopt;
  trace_correctness out;
  const auto* from = fields.object(document, path, "correctness");
  if (from == nullptr)
    return out;
  const auto at = join_path(path, "correctness");
  out.max_relative_error = not_negative(*from, at, "max_relative_error", fields);
  out.max_absolute_error = not_negative(*from, at, "max_absolute_error", fields);
  out.has_nan = fields.boolean(*from, at, "has_nan", false);
  out.has_inf = fields.boolean(*from, at, "has_inf", false);
  if (is_there(*from, "extra"))
    if (const auto* extra = fields.object(*from, at, "extra")) {
      out.extra = *extra;
      const auto where = join_path(at, "extra");
      if (has_non_finite(*extra))
        fields.warn(where,
          fmt::format("{}: has a number that is not finite, which strict JSON cannot hold", where));
    }
  fields.ignore_others(
    *from, at, {"max_relative_error", "max_absolute_error", "has_nan", "has_inf", "extra"});
  return out;
}

std::optional<trace_performance> read_performance(
  const ordered_json& document, std::string_view path, field_reader& fields) {
  if (!is_there(document, "performance"))
    return std::nullopt;
  trace_performance out;
  const auto* from = fields.object(document, path, "performance");
  if (from == nullptr)
    return out;
  const auto at = join_path(path, "performance");
  out.latency_ms = not_negative(*from, at, "latency_ms", fields);
  out.reference_latency_ms = not_negative(*from, at, "reference_latency_ms", fields);
  out.speedup_factor = not_negative(*from, at, "speedup_factor", fields);
  fields.ignore_others(*from, at, {"latency_ms", "reference_latency_ms", "speedup_factor"});
  return out;
}

/// The rule of the status is checked only when none of its own fields failed.
trace_evaluation read_evaluation(
  const ordered_json& from, std::string_view path, field_reader& fields) {
  trace_evaluation out;
  const size_t errors_before = fields.error_count();
  const auto status = fields.text(from, path, "status", need::required);
  if (const auto known = parse_trace_status(status))
    out.status = *known;
  else if (!status.empty())
    fields.error(join_path(path, "status"),
      fmt::format(
        "unknown status {}{}", excerpt(status), suggestion(status, trace_status_names())));
  out.environment = read_environment(from, path, fields);
  out.timestamp = fields.text(from, path, "timestamp", need::required);
  out.log = fields.text(from, path, "log", need::not_null);
  out.correctness = read_correctness(from, path, fields);
  out.performance = read_performance(from, path, fields);
  fields.ignore_others(
    from, path, {"status", "environment", "timestamp", "log", "correctness", "performance"});
  if (fields.error_count() > errors_before)
    return out;
  const char* field = nullptr;
  const auto why =
    status_error(out.status, out.correctness.has_value(), out.performance.has_value(), field);
  if (!why.empty())
    fields.error(join_path(path, field), why);
  return out;
}

result<trace> read_line(
  std::string_view json_line, const std::string& where, std::vector<std::string>& warnings) {
  json_limits limits;
  limits.bytes = line_bytes_max;
  limits.python_numbers = true;
  auto document = parse_json_object(json_line, where, limits);
  if (!document)
    return pass(document);
  field_reader fields;
  trace out;
  out.definition_name = fields.text(*document, "", "definition", need::required);
  if (const auto* work = fields.object(*document, "", "workload"))
    out.work = read_workload(*work, "workload", fields, json_line);
  out.solution_name = fields.text(*document, "", "solution", need::free);
  if (is_there(*document, "evaluation"))
    if (const auto* evaluation = fields.object(*document, "", "evaluation"))
      out.evaluation = read_evaluation(*evaluation, "evaluation", fields);
  fields.ignore_others(*document, "", {"definition", "workload", "solution", "evaluation"});
  if (out.solution_name.empty() != !out.evaluation)
    fields.warn("evaluation",
      out.evaluation ? "evaluation: there is one, but no solution is named"
                     : "evaluation: a solution is named, but there is none");
  warnings = fields.warnings();
  if (fields.failed())
    return tl::unexpected(fields.collected(where));
  return out;
}

/// What JSON can hold. The names of fields that it cannot go to the list.
double finite(double value, const char* key, std::vector<std::string>& non_finite) {
  if (std::isfinite(value))
    return value;
  non_finite.emplace_back(key);
  return std::numeric_limits<double>::max();
}

ordered_json correctness_to_json(const trace_correctness& given) {
  ordered_json out = ordered_json::object();
  std::vector<std::string> non_finite;
  out["max_relative_error"] = finite(given.max_relative_error, "max_relative_error", non_finite);
  out["max_absolute_error"] = finite(given.max_absolute_error, "max_absolute_error", non_finite);
  out["has_nan"] = given.has_nan;
  out["has_inf"] = given.has_inf;
  auto& extra = out["extra"] = given.extra;
  if (!non_finite.empty())
    extra["non_finite"] = non_finite;
  return out;
}

/// Cut between two characters.
std::string bounded_log(const std::string& log) {
  if (log.size() <= log_bytes_max)
    return log;
  const std::string mark = fmt::format("\n[cut: the log had {} bytes]", log.size());
  size_t kept = log_bytes_max - mark.size();
  while (kept > 0 && (static_cast<unsigned char>(log[kept]) & 0xc0) == 0x80)
    --kept;
  return log.substr(0, kept) + mark;
}

ordered_json evaluation_to_json(const trace_evaluation& given) {
  ordered_json out = ordered_json::object();
  out["status"] = std::string{name(given.status)};
  auto& environment = out["environment"];
  environment["hardware"] = given.environment.hardware;
  auto& libs = environment["libs"] = ordered_json::object();
  for (const auto& [library, version] : given.environment.libs)
    libs[library] = version;
  out["timestamp"] = given.timestamp;
  out["log"] = bounded_log(given.log);
  out["correctness"] = given.correctness ? correctness_to_json(*given.correctness) : ordered_json{};
  auto& performance = out["performance"];
  if (given.performance) {
    performance["latency_ms"] = given.performance->latency_ms;
    performance["reference_latency_ms"] = given.performance->reference_latency_ms;
    performance["speedup_factor"] = given.performance->speedup_factor;
  }
  return out;
}

result<void> check_numbers(const trace_evaluation& given) {
  const auto refuse = [](std::string_view field, const std::string& why) {
    return fail(errc::invalid_input, fmt::format("evaluation.{}: {}", field, why));
  };
  if (given.correctness) {
    // NaN and infinity may come out of a comparison, and are written as said in the header.
    if (given.correctness->max_relative_error < 0)
      return refuse("correctness.max_relative_error", "must not be negative");
    if (given.correctness->max_absolute_error < 0)
      return refuse("correctness.max_absolute_error", "must not be negative");
    const auto& extra = given.correctness->extra;
    if (!extra.is_null() && !extra.is_object())
      return refuse("correctness.extra", "must be an object or null");
    if (has_non_finite(extra))
      return refuse("correctness.extra", "has a number that is not finite");
  }
  if (given.performance) {
    const std::pair<const char*, double> times[] = {
      {"performance.latency_ms", given.performance->latency_ms},
      {"performance.reference_latency_ms", given.performance->reference_latency_ms},
      {"performance.speedup_factor", given.performance->speedup_factor},
    };
    for (const auto& [field, value] : times)
      if (!(value >= 0) || std::isinf(value))
        return refuse(field, fmt::format("must be finite and not negative, but is {}", value));
  }
  return {};
}

/// What has a clearer message than the reader would give, and what the reader takes.
result<void> check_fields(const trace& given) {
  const auto refuse = [](std::string_view field, const std::string& why) {
    return fail(errc::invalid_input, fmt::format("{}: {}", field, why));
  };
  if (given.definition_name.empty())
    return refuse("definition", "must not be empty");
  if (given.work.uuid.empty())
    return refuse("workload.uuid", "must not be empty");
  if (!given.evaluation)
    return {};
  const auto& evaluation = *given.evaluation;
  if (evaluation.environment.hardware.empty())
    return refuse("evaluation.environment.hardware", "must not be empty");
  if (evaluation.timestamp.empty())
    return refuse("evaluation.timestamp", "must not be empty");
  const char* field = nullptr;
  const auto why = status_error(evaluation.status, evaluation.correctness.has_value(),
    evaluation.performance.has_value(), field);
  if (!why.empty())
    return refuse(fmt::format("evaluation.{}", field), why);
  return check_numbers(evaluation);
}

} // namespace

std::string_view name(trace_status status) {
  return row_of(status).name;
}

std::optional<trace_status> parse_trace_status(std::string_view text) {
  for (size_t i = 0; i < statuses.size(); ++i)
    if (statuses[i].name == text)
      return static_cast<trace_status>(i);
  return std::nullopt;
}

const std::vector<std::string>& trace_status_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& row : statuses)
      out.emplace_back(row.name);
    return out;
  }();
  return names;
}

bool has_correctness(trace_status status) {
  return row_of(status).correctness;
}

bool has_performance(trace_status status) {
  return row_of(status).performance;
}

result<trace> parse_trace(std::string_view json_line, const std::string& file_name, size_t line,
  std::vector<std::string>* warnings) {
  const auto where = fmt::format("{}:{}", file_name, line);
  std::vector<std::string> own;
  auto out = read_line(json_line, where, own);
  if (warnings != nullptr)
    for (const auto& each : own)
      warnings->push_back(fmt::format("{}: {}", where, each));
  return out;
}

result<trace_evaluation> parse_evaluation(
  const ordered_json& from, const std::string& file_name, std::string_view path) {
  field_reader fields;
  trace_evaluation out;
  if (from.is_object())
    out = read_evaluation(from, path, fields);
  else
    fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name));
  return out;
}

result<std::vector<trace>> parse_traces(
  std::string_view text, const std::string& file_name, std::vector<std::string>* warnings) {
  std::vector<trace> out;
  const auto read = [&](std::string_view content, size_t line,
                      std::vector<std::string>& own) -> result<void> {
    auto next = read_line(content, fmt::format("{}:{}", file_name, line), own);
    if (!next)
      return pass(next);
    out.push_back(std::move(*next));
    return {};
  };
  if (auto fine = for_each_line(text, file_name, warnings, read); !fine)
    return pass(fine);
  return out;
}

result<std::vector<trace>> load_traces(
  const std::filesystem::path& path, std::vector<std::string>* warnings) {
  auto text = read_text_file(path, file_bytes_max);
  if (!text)
    return pass(text);
  return parse_traces(*text, path.string(), warnings);
}

result<void> check_trace(const trace& given) {
  auto line = to_json(given);
  if (!line)
    return pass(line);
  return {};
}

result<std::string> to_json(const trace& given) {
  if (auto fine = check_fields(given); !fine)
    return pass(fine);
  ordered_json out = ordered_json::object();
  out["definition"] = given.definition_name;
  out["workload"] = workload_to_json(given.work);
  out["solution"] =
    given.solution_name.empty() ? ordered_json{} : ordered_json(given.solution_name);
  out["evaluation"] = given.evaluation ? evaluation_to_json(*given.evaluation) : ordered_json{};
  auto line = dump_json(out, false);
  // The reader has the last word: about the workload, the depth of `extra`, the length.
  if (auto read = parse_trace(line, "the trace", 1); !read)
    return pass(read);
  return line;
}

} // namespace gristmill
