#pragma once

#include "journal/blob_store.hpp"
#include "journal/run_directory.hpp"
#include "messages/result.hpp"
#include "protocol/run_settings.hpp"
#include "report/run_table.hpp"

#include <filesystem>
#include <vector>

namespace gristmill {

struct read_back {
  run_table table;
};

/// The directory of a run that exists. `not_found` names the nearest run, if one is near.
result<run_directory> open_run(const std::filesystem::path& folder);

/// What its run.toml says. `not_found` when that cannot be read, and errors of `apply_toml`.
result<run_settings> read_settings(const run_directory& directory);

/// All events of a run, in order. Errors as of `read_run`.
result<std::vector<event>> read_events(const std::filesystem::path& folder);

/// The table of a run from its log alone; also of one that goes on or was killed. `not_found` for a
/// folder that is no run directory.
result<read_back> read_run(const std::filesystem::path& folder);

/// A text that the run stored, by the hash that its log names. `io_failed` where the content is not
/// what its name says, or is longer than any candidate may be.
result<std::string> stored_text(const blob_store& blobs, const std::string& sha256);

} // namespace gristmill
