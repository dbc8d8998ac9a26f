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
  /// What results name as their device: "mock:h200", "cuda:h200".
  std::string device_label = "mock";
  /// "NVIDIA H200" of a real device; empty for a model.
  std::string device_title;
  /// Kernels run on a real device: times are measured, not modelled.
  bool measured = false;
  device_facts facts;
  /// Bandwidth and arithmetic rate of the floor.
  uint64_t floor_bytes_per_second = 0;
  uint64_t floor_flops_per_second = 0;
  /// Of the matrix units, in multiply-adds a second.
  mac_counts floor_macs_per_second{};
  /// What no kernel of the device can beat; 0 = not known, as of a model, which has no such limit.
  uint64_t shortest_kernel_ns = 0;
  uint64_t write_bytes_per_second = 0;
  /// Compiler target, such as "sm_90a".
  std::string arch;
  /// Who makes device code, such as "clang-19.1.7".
  std::string toolchain;
  std::optional<bounds_table> bounds;

  /// "auto", "native" or "torch".
  std::string oracle = "auto";
  /// Interpreter of the torch oracle; empty when there is none.
  std::string python;
  /// Where safetensors files are searched after the problem's own folder; FLASHINFER_TRACE_DIR.
  std::vector<std::filesystem::path> blob_roots;

  /// Workloads with more elements than this are checked on a shrunken twin.
  uint64_t check_elements_max = 2'000'000;
  /// Sets of inputs that a workload is checked on, made once and used for every candidate.
  uint32_t rounds = 1;
  /// What the sets of one workload may take on the disk, and their references in multiply-adds.
  /// There is always one set, and fewer than `rounds` are told.
  uint64_t sets_bytes_max = uint64_t{1} << 30;
  uint64_t sets_macs_max = uint64_t{1} << 37;
  /// Whether a candidate has to pass a promotion before it is the incumbent.
  bool promote = false;
  /// Samples of a timing, and what L2 holds before each call: "official" or "clean". Only on a real
  /// device.
  uint32_t samples = 1;
  std::string flush = "official";
  /// Warp instructions of one launch in the mock before it counts as endless.
  uint64_t instruction_limit = 200'000'000;

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
