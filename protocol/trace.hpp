#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"
#include "protocol/workload.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// How the evaluation of one workload ended (specification, section 4).
enum class trace_status : uint8_t {
  passed,
  incorrect_numerical,
  incorrect_shape,
  incorrect_dtype,
  invalid_reference,
  runtime_error,
  reward_hack,
  compile_error,
  timeout,
};

/// "PASSED" and so on, as files have it.
std::string_view name(trace_status status);
/// Exact and case-sensitive.
std::optional<trace_status> parse_trace_status(std::string_view text);
/// All names in the order of the enumeration.
const std::vector<std::string>& trace_status_names();
/// Whether a trace of that status has numbers about correctness, and about time. Where it says
/// false they must be absent.
bool has_correctness(trace_status status);
bool has_performance(trace_status status);

struct trace_environment {
  /// Not empty.
  std::string hardware;
  /// Library and version, in the order of the file.
  std::vector<std::pair<std::string, std::string>> libs;

  friend bool operator==(const trace_environment&, const trace_environment&) = default;
};

struct trace_correctness {
  double max_relative_error = 0;
  double max_absolute_error = 0;
  bool has_nan = false;
  bool has_inf = false;
  /// An object, or null.
  ordered_json extra;

  friend bool operator==(const trace_correctness&, const trace_correctness&) = default;
};

/// Milliseconds, and their quotient; 0 where nothing was measured.
struct trace_performance {
  double latency_ms = 0;
  double reference_latency_ms = 0;
  double speedup_factor = 0;

  friend bool operator==(const trace_performance&, const trace_performance&) = default;
};

struct trace_evaluation {
  trace_status status = trace_status::runtime_error;
  trace_environment environment;
  /// Local time as ISO 8601 without a zone; not checked.
  std::string timestamp;
  std::string log;
  std::optional<trace_correctness> correctness;
  std::optional<trace_performance> performance;

  friend bool operator==(const trace_evaluation&, const trace_evaluation&) = default;
};

/// One line of a trace file: what one solution did with one workload.
struct trace {
  /// The `name` of the definition.
  std::string definition_name;
  workload work;
  /// The `name` of the solution; empty for null.
  std::string solution_name;
  std::optional<trace_evaluation> evaluation;

  /// Neither solution nor evaluation: only the workload is stated.
  bool is_workload_trace() const { return solution_name.empty() && !evaluation; }

  friend bool operator==(const trace&, const trace&) = default;
};

/// One line. Field errors are collected; then the rules of the status are checked. `line` is
/// counted from 1 and stands in every message.
result<trace> parse_trace(std::string_view json_line, const std::string& file_name, size_t line,
  std::vector<std::string>* warnings = nullptr);

/// Only the object under `evaluation`, for which `path` stands in messages.
result<trace_evaluation> parse_evaluation(
  const ordered_json& from, const std::string& file_name, std::string_view path = "evaluation");

/// A whole file; blank lines are skipped. Fails if any line does, with the messages of the first
/// twenty. A warning that repeats is given once, with the number of lines.
result<std::vector<trace>> parse_traces(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings = nullptr);
/// The same from a file of at most 1 GiB.
result<std::vector<trace>> load_traces(
  const std::filesystem::path& path, std::vector<std::string>* warnings = nullptr);

/// Everything that `parse_trace` would refuse about the line that `to_json` makes of it (an empty
/// name, a negative number, numbers that the status forbids or misses, a workload that does not
/// load), and what it reads with a warning but strict JSON cannot hold: a time, or a number in
/// `extra`, that is not finite.
result<void> check_trace(const trace& given);

/// One line of strict JSON without the newline, in the order of the format, the defaults of the
/// tolerance filled in. Refuses what `check_trace` refuses. The format has no infinity: an infinite
/// or NaN error is written as the largest finite number, and `extra.non_finite` names its field.
/// A log above 5 MiB is cut at its end, which says so.
result<std::string> to_json(const trace& given);

} // namespace gristmill
