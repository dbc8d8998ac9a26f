#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"
#include "protocol/problem.hpp"
#include "report/baseline_table.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// How each mode is measured; the same for all of them.
struct baseline_protocol {
  /// "official" (a memset of twice the second level cache before each call) or "clean" (by
  /// reading).
  std::string flush = "official";
  int64_t samples = 50;
  double warm_up_s = 0.3;
  /// Sets of input values that the calls rotate through.
  int64_t sets = 4;
  uint64_t seed = 0;
  /// Trial on the CPU: nothing of it is a measurement.
  bool on_cpu = false;
};

/// One process to start.
struct baseline_task {
  std::string problem;
  std::string uuid;
  std::string mode;
  /// The file that the script reads; beside it lies the reference.
  std::string job_file;
};

/// Modes that every problem has, in the order in which they are measured: the cheap ones first.
const std::vector<std::string>& general_baseline_modes();

/// Code of a mode that a problem brings along: FOLDER/baseline/MODE.py, by name. It has a function
/// `run` with the reference's arguments.
std::vector<std::pair<std::string, std::filesystem::path>> problem_baseline_modes(
  const problem& target);

/// What a workload must at least do, from its operator graph where the problem has one.
result<baseline_table::row> baseline_row(const problem& target, const workload& work);

/// Writes the job of a mode for a workload below `scratch`. `code` is empty for a general mode.
/// `copy_bytes` above 0 also times a copy that moves as much. Errors: `unsupported` for inputs that
/// are not random or scalar, `io_failed`, and axes that do not resolve.
result<baseline_task> write_baseline_job(const problem& target, const workload& work,
  const std::string& mode, const std::string& code, uint64_t copy_bytes,
  const baseline_protocol& how, const std::filesystem::path& scratch);

/// The job of the roofline.
result<baseline_task> write_rates_job(
  const baseline_protocol& how, const std::filesystem::path& scratch);

/// Writes the measuring scripts below `scratch`; answers the path of the one to start.
result<std::string> write_baseline_scripts(const std::filesystem::path& scratch);
/// SHA-256 over the scripts, which is what makes two tables comparable.
std::string baseline_scripts_hash();

} // namespace gristmill
