#pragma once

#include "gpu/mock/explain.hpp"
#include "gpu/mock/profile.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "messages/compile.hpp"
#include "messages/result.hpp"
#include "protocol/resolve.hpp"
#include "tensors/compare.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Runs one call of a kernel on the mock and looks at it from all sides: what is wrong with it,
/// what it did, how long a GPU would take. The program `gristmill-emulate` is this and a command
/// line.
namespace gristmill {

struct emulate_settings {
  gpu_profile profile;
  ptx::check_set checks = ptx::all_checks;
  /// Further runs in shuffled orders, which have to give the same outputs.
  uint32_t orders = 0;
  uint64_t order_seed = 1;
  /// How many of them run at once, each with a thread and memory of its own. Says nothing about
  /// what is found.
  uint32_t jobs = 1;
  /// Warp instructions of one launch.
  uint64_t instruction_limit = 2'000'000'000;
  bool time = true;
  uint64_t printed_bytes_max = uint64_t{64} << 10;
  /// How far results may differ from order to order where the kernel adds floats by atomics.
  tolerance allowed;
};

struct emulated_finding {
  ptx::fault what;
  /// Otherwise a remark.
  bool is_fault = true;
  uint32_t step = 0;
};

struct emulated_launch {
  uint32_t step = 0;
  explained_launch launch;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  launch_profile profile;
};

struct emulation {
  /// Of each launch that was executed, in order.
  std::vector<emulated_launch> launches;
  /// Faults first.
  std::vector<emulated_finding> findings;
  uint64_t findings_left_out = 0;
  uint32_t orders_run = 0;
  bool orders_agree = true;
  /// Of the whole call; `time_refused` says why there is none.
  std::optional<call_time> time;
  std::string time_label;
  std::string time_refused;
  std::string printed;
  uint64_t printed_left_out = 0;
  /// Content of each buffer that is an output, in order; as far as it was computed.
  std::vector<std::vector<std::byte>> outputs;
  /// What the mock found odd about a launch.
  std::vector<std::string> warnings;

  bool has_fault() const;
};

/// Executes every step in full. `inputs` are the tensor inputs in order. What the kernel does wrong
/// is a finding; a failure is what keeps it from being run: PTX that is not supported, an entry
/// that is missing, a launch that the device refuses.
result<emulation> emulate(const std::string& ptx, const std::vector<compiled_entry>& entries,
  const resolved_workload& work, const std::vector<std::vector<std::byte>>& inputs,
  const emulate_settings& how);

} // namespace gristmill
