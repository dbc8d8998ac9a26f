#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A cluster's record as a source of requests for leases (docs/trace-format.md).
enum class import_form : uint8_t { swf = 0, openb, gavel };

std::string to_string(import_form form);
/// Errors: `invalid_input`, naming the nearest.
result<import_form> parse_import_form(std::string_view text);

struct import_options {
  /// Every time of the source is multiplied by this; above 0, at most 1,000.
  double time_scale = 0.01;
  /// GPUs of the trace; 0 for as many as make the offered load 80 %.
  uint32_t gpus = 0;
  /// At most so many requests, the earliest; at most `import_requests_max`.
  uint32_t limit = 10'000;
  /// Longer holds are cut to this, after scaling; 0 cuts nothing.
  double hold_cap_s = 600;
  /// Of `gavel`, whose file has steps and no times: mean time of a job, in seconds of the source.
  double mean_job_s = 3600;
};

inline constexpr uint32_t import_requests_max = 16'000;

/// A job of the source, in its own time.
struct imported_job {
  double arrival_s = 0;
  double hold_s = 0;
  /// What its user said that it would take; 0 when he said nothing.
  double estimate_s = 0;
  /// GPUs that it holds at the same time.
  uint32_t gpus = 1;
  uint32_t weight = 1;
  /// Name of the job, and of whom it belongs to.
  std::string name;
  std::string owner;
  std::string model;
};

struct imported_trace {
  std::vector<imported_job> jobs;
  /// Jobs that are not in it, and what of the others is lost: count by reason.
  std::map<std::string, uint64_t> lost;
  uint64_t lines = 0;
};

/// Takes the lines of a file one by one, without their line ends. Errors: `invalid_input`, naming
/// the line and the field.
class import_reader {
public:
  virtual ~import_reader() = default;
  virtual result<void> take(std::string_view line, uint64_t number, imported_trace& out) = 0;
  /// After the last line.
  virtual result<void> finish(imported_trace& out, const import_options& options) = 0;
};

std::unique_ptr<import_reader> make_import_reader(import_form form);

/// Reads a file of the source. At most 64 KiB a line and 2,000,000 jobs. Errors: `not_found`,
/// `io_failed`, `invalid_input` naming file, line and field, `refused` over a limit.
result<imported_trace> read_import(
  import_form form, const std::filesystem::path& file, const import_options& options);

struct import_summary {
  uint64_t jobs = 0;
  uint64_t requests = 0;
  uint32_t gpus = 0;
  /// From the first arrival to the last, scaled.
  double span_s = 0;
  double hold_mean_s = 0;
  double hold_max_s = 0;
  /// Held GPU seconds over GPUs times the span, as the trace asks for it.
  double offered_load = 0;
  /// Whole sentences.
  std::vector<std::string> lost;
};

/// Writes the jobs as a lease trace, one line at a time. `source` names the file for the header.
/// Errors: `invalid_input` for options out of range or when nothing is left to write.
result<import_summary> write_lease_trace(imported_trace jobs, import_form form,
  const std::string& source, const import_options& options,
  const std::function<void(const std::string& line)>& write);

} // namespace gristmill
