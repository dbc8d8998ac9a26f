#pragma once

#include "protocol/resolve.hpp"
#include "tensors/mac_class.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace gristmill {

/// What decides the result of a step on whichever machine it is done: how inputs are made, what is
/// compiled for, and how candidates are checked, timed and judged. No paths and nothing of one
/// machine, so it is copied as a whole: a coordinator's `run_context` to its `run_terms`, and from
/// these to the contexts of the nodes. A field more has to be in the JSON of the terms as well.
struct run_rules {
  /// Keys the inputs: whoever has it can tell them in advance. Derived from `seed` when the user
  /// gave one, else from the kernel's generator. It travels over TLS or loopback only.
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

  /// "auto", "native" or "torch".
  std::string oracle = "auto";
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

  friend bool operator==(const run_rules&, const run_rules&) = default;
};

} // namespace gristmill
