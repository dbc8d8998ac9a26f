#pragma once

#include "journal/run_directory.hpp"
#include "messages/result.hpp"
#include "report/run_table.hpp"

#include <filesystem>
#include <vector>

namespace gristmill {

struct read_back {
  run_table table;
};

/// The directory of a run that exists. `not_found` names the nearest run, if one is near.
result<run_directory> open_run(const std::filesystem::path& folder);

/// All events of a run, in order. Errors as of `read_run`.
result<std::vector<event>> read_events(const std::filesystem::path& folder);

/// The table of a run from its log alone; also of one that goes on or was killed. `not_found` for a
/// folder that is no run directory.
result<read_back> read_run(const std::filesystem::path& folder);

} // namespace gristmill
