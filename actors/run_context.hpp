#pragma once

#include "journal/blob_store.hpp"
#include "protocol/bounds.hpp"
#include "protocol/problem.hpp"
#include "protocol/resolve.hpp"
#include "tensors/mac_class.hpp"

#include <array>
#include <atomic>
#include <chrono>
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
struct run_context {
  /// The run directory.
  std::filesystem::path directory;
  /// Folder of gristmill-jail, gristmill-runner and the other children.
  std::filesystem::path programs;
  std::shared_ptr<blob_store> blobs;
  std::map<std::string, problem, std::less<>> problems;
  /// Keys the inputs; derived from `seed` when the user gave one, else from the kernel's generator.
  std::array<uint8_t, 32> secret{};
  uint64_t seed = 0;
  /// SHA-256 of the protocol file that proposers are told; empty for none.
  std::string program;

  /// Such as "h200"; one model a run in this build.
  std::string device_model;
  device_facts facts;
  /// Bandwidth and arithmetic rate of the floor.
  uint64_t floor_bytes_per_second = 0;
  uint64_t floor_flops_per_second = 0;
  /// Of the matrix units, in multiply-adds a second.
  mac_counts floor_macs_per_second{};
  /// Compiler target, such as "sm_90a".
  std::string arch;
  std::optional<bounds_table> bounds;

  /// "auto", "native" or "torch".
  std::string oracle = "auto";
  /// Interpreter of the torch oracle; empty when there is none.
  std::string python;
  /// Where safetensors files are searched after the problem's own folder; FLASHINFER_TRACE_DIR.
  std::vector<std::filesystem::path> blob_roots;

  /// Problems with more elements than this are checked on a shrunken twin.
  uint64_t check_elements_max = 2'000'000;
  /// Warp instructions of one launch in the mock before it counts as endless.
  uint64_t instruction_limit = 200'000'000;

  /// Numbers the children of this process, over all actors and their restarts.
  std::shared_ptr<std::atomic<uint64_t>> child_ids = std::make_shared<std::atomic<uint64_t>>(1);

  /// Where inputs lie; the runner reads them.
  std::filesystem::path inputs(const std::string& problem_name, const std::string& uuid) const;
  /// Where references lie; only the judge reads them.
  std::filesystem::path references(const std::string& problem_name, const std::string& uuid) const;
  /// Job directories of children.
  std::filesystem::path jobs() const { return directory / "jobs"; }
};

using run_context_ptr = std::shared_ptr<const run_context>;

} // namespace gristmill
