#pragma once

#include "cli/baseline_jobs.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// What `gristmill baseline` has to do, in order, and what the workloads need at least.
struct baseline_plan {
  std::vector<problem> problems;
  std::vector<baseline_task> tasks;
  std::vector<baseline_table::row> rows;
};

/// All problems of one mode before the next mode: when the time is over, what is left out is the
/// dearest mode, for all alike. `modes` has commas between and is empty for all of them; `code` is
/// a Python file for the mode "agent", empty for none. Jobs are written below `scratch`. Errors:
/// `invalid_input` with the nearest mode for an unknown one; those of `baseline_row` and
/// `write_baseline_job`.
result<baseline_plan> make_baseline_plan(std::vector<problem> problems, const std::string& modes,
  const std::string& code, const baseline_protocol& how, const std::filesystem::path& scratch);

} // namespace gristmill
