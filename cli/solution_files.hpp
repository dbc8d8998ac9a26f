#pragma once

#include "journal/blob_store.hpp"
#include "messages/result.hpp"
#include "protocol/exporter/export_plan.hpp"
#include "protocol/problem.hpp"
#include "protocol/resolve.hpp"
#include "protocol/solution.hpp"
#include "report/export_run.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// Writes the file and the folders above it. `io_failed` names it.
result<void> write_file(const std::filesystem::path& path, const std::string& text);

/// Writes the best kernels of a run as files, a folder a problem: `solution.json`, `traces.jsonl`,
/// `definition.json`, `workload.jsonl`, and the torch operator in `op/`.
class solution_files {
public:
  /// Everything is used until the end of this object. `facts`: what plans were told of the device.
  solution_files(const run_winners& run, const blob_store& blobs, const device_facts& facts,
    std::filesystem::path out)
    : run_(run), blobs_(blobs), facts_(facts), out_(std::move(out)) {}

  /// `best` is one of the run's. A problem that is refused leaves no half a folder. Errors: those
  /// of `export_plan` and `traces_of`, and `io_failed`.
  result<void> write(const winner& best, const problem& target);
  std::filesystem::path folder_of(const std::string& problem_name) const;

  /// Of all problems that were written.
  std::string all_traces;
  /// What could not be written besides, and why.
  std::vector<std::string> notes;

private:
  solution solution_of(const winner& best, const problem& target, const exported_plan& built) const;
  result<void> write_operator(const std::filesystem::path& folder, const winner& best,
    const problem& target, const exported_plan& built);

  const run_winners& run_;
  const blob_store& blobs_;
  const device_facts& facts_;
  std::filesystem::path out_;
};

} // namespace gristmill
