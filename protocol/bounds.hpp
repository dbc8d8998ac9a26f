#pragma once

#include "messages/result.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

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
  /// Problem name -> workload uuid -> bounds.
  std::map<std::string, std::map<std::string, workload_bounds>> problems;

  /// Null when the table has nothing for that workload.
  const workload_bounds* find(const std::string& problem_name, const std::string& uuid) const;
};

/// `{"schema":"gristmill.bounds/1","source":…,"date":…,"device":…,"problems":{name:{uuid:
/// {"t_sol_ns":…,"t_b_ns":…}}}}`. Times must be finite and positive; unknown keys are refused.
result<bounds_table> parse_bounds(std::string_view text, const std::string& file_name);
result<bounds_table> load_bounds(const std::filesystem::path& file);

} // namespace gristmill
