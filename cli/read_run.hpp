#pragma once

#include "messages/result.hpp"
#include "report/run_table.hpp"

#include <filesystem>

namespace gristmill {

struct read_back {
  run_table table;
};

/// The table of a run from its log alone; also of one that goes on or was killed. `not_found` for a
/// folder that is no run directory.
result<read_back> read_run(const std::filesystem::path& folder);

} // namespace gristmill
