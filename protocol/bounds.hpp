#pragma once

#include "messages/result.hpp"
#include "protocol/baseline_record.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// Bound and baseline of one workload in nanoseconds. Fractions are real: published bounds go
/// below a tenth of a nanosecond.
struct workload_bounds {
  double t_sol_ns = 0;
  double t_b_ns = 0;

  friend bool operator==(const workload_bounds&, const workload_bounds&) = default;
};

/// What `--bounds FILE` brings. A score says where its numbers are from, so a table without source,
/// date and device is refused.
struct bounds_table {
  std::string source;
  /// YYYY-MM-DD.
  std::string date;
  /// A device name such as "mock:h200"; scores of other devices are not comparable.
  std::string device;
  /// In what state the device's clocks were, such as "locked at 1500/3996 MHz" or "modelled".
  /// Empty in a table of schema 1, which cannot say it.
  std::string clock;
  /// How T_SOL was computed and what T_b is the time of; empty when the table does not say.
  std::string t_sol_method;
  std::string t_b_method;
  /// Problem name -> workload uuid -> bounds.
  std::map<std::string, std::map<std::string, workload_bounds>> problems;
  /// Of schema 3: what measured the table, on what, in which circumstances, as names and words
  /// ("driver", "torch", "script_sha256", …). Empty in the others.
  std::vector<std::pair<std::string, std::string>> provenance;
  /// Of schema 3: where each T_b is from. Problem name -> workload uuid -> record.
  std::map<std::string, std::map<std::string, baseline_record>> baselines;
  /// Problem name -> category, for those that have one.
  std::map<std::string, std::string> categories;
  /// The problems in the order of the file.
  std::vector<std::string> order;

  /// Null when the table has nothing for that workload.
  const workload_bounds* find(const std::string& problem_name, const std::string& uuid) const;
  /// Null where the table does not say where T_b is from.
  const baseline_record* find_baseline(
    const std::string& problem_name, const std::string& uuid) const;
};

/// Reads one of three schemas. Times must be finite and positive; unknown keys are refused.
///
/// `gristmill.bounds/1`: `{"schema":…,"source":…,"date":…,"device":…,"problems":{name:{uuid:
/// {"t_sol_ns":…,"t_b_ns":…}}}}`.
///
/// `gristmill.bounds/2`: also `"clock":…` (required), `"t_sol_method":…`, `"t_b_method":…`, and
/// `"problems":{name:{"category":…,"sol_is_dummy":false,"workloads":{uuid:{"t_sol_ns":…,
/// "t_b_ns":…}}}}`. A problem whose `sol_is_dummy` is true has a placeholder for a bound: the whole
/// table is refused, by the problem's name.
///
/// `gristmill.bounds/3`, which `gristmill baseline` writes: as 2, with `"provenance":{name:text}`
/// (required) and `"baseline":{…}` in each workload (protocol/baseline_record.hpp), whose winner's
/// median must be `t_b_ns`.
result<bounds_table> parse_bounds(std::string_view text, const std::string& file_name);
result<bounds_table> load_bounds(const std::filesystem::path& file);

/// A table as schema 3 when it has a provenance, else as schema 2. Equal tables give equal bytes.
std::string to_json(const bounds_table& table);

} // namespace gristmill
