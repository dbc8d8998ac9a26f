#pragma once

#include "journal/blob_store.hpp"
#include "protocol/bounds.hpp"
#include "protocol/problem.hpp"
#include "protocol/run_rules.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// What all actors of a run share and nobody changes after the start. Problems, paths and secrets
/// stay here, so that messages carry names.
struct run_context : run_rules {
  /// The run directory.
  std::filesystem::path directory;
  /// Folder of gristmill-jail, gristmill-runner and the other children.
  std::filesystem::path programs;
  std::shared_ptr<blob_store> blobs;
  std::map<std::string, problem, std::less<>> problems;
  std::optional<bounds_table> bounds;
  /// Interpreter of the torch oracle; empty when there is none.
  std::string python;
  /// Where safetensors files are searched after the problem's own folder; FLASHINFER_TRACE_DIR.
  std::vector<std::filesystem::path> blob_roots;

  /// Numbers the children of this process, over all actors and their restarts.
  std::shared_ptr<std::atomic<uint64_t>> child_ids = std::make_shared<std::atomic<uint64_t>>(1);

  /// Where inputs lie; the runner reads them. Those of a draw lie apart from the pool's.
  std::filesystem::path inputs(
    const std::string& problem_name, const std::string& uuid, const std::string& draw = {}) const;
  /// Where references lie; only the judge reads them.
  std::filesystem::path references(
    const std::string& problem_name, const std::string& uuid, const std::string& draw = {}) const;
  /// All that was made for a draw.
  std::array<std::filesystem::path, 2> draw_folders(const std::string& draw) const;
  /// Job directories of children.
  std::filesystem::path jobs() const { return directory / "jobs"; }
};

using run_context_ptr = std::shared_ptr<const run_context>;

} // namespace gristmill
