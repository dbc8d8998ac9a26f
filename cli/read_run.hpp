#pragma once

#include "messages/result.hpp"
#include "report/run_table.hpp"

#include <filesystem>
#include <vector>

namespace gristmill {

struct read_back {
  run_table table;
};

/// All events of a run, in order. Errors as of `read_run`.
result<std::vector<event>> read_events(const std::filesystem::path& folder);

/// The table of a run from its log alone; also of one that goes on or was killed. `not_found` for a
/// folder that is no run directory.
result<read_back> read_run(const std::filesystem::path& folder);

} // namespace gristmill
