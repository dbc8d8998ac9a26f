#pragma once

#include "gpu/children/call_builder.hpp"
#include "gpu/children/pass_failure.hpp"
#include "gpu/children/unit_store.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/device.hpp"
#include "messages/measure.hpp"
#include "protocol/child_program.hpp"
#include "protocol/job.hpp"
#include "tensors/philox.hpp"
#include "tensors/tensor_file.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// A device, and the same once more where it is a real one.
struct runner_device {
  device* any = nullptr;
  cuda_device* real = nullptr;
  /// Of a real device: who ends this process when what follows takes longer. May be empty.
  std::function<void(std::chrono::nanoseconds)> allow;

  void may_take(std::chrono::nanoseconds time) const {
    if (allow)
      allow(time);
  }
};

/// What our own work on a real device may take: assembling code, copying gigabytes.
constexpr std::chrono::minutes work_allowance{5};

/// Puts an input in the device's memory, read-only for kernels: from its file, or a pattern file
/// over and over. What the device may still read through is kept in `mapped`.
pass_result<device_pointer> map_buffer(device& gpu, const child_context& context,
  const run_buffer& buffer, std::vector<mapped_file>& mapped);

/// Fills a buffer with what the key draws: values such as inputs of the type have, or any bytes.
/// Nothing for an address of 0.
pass_result<void> fill_random(const runner_device& gpu, const resolved_buffer& what,
  device_pointer to, tensor_key key, bool plausible);

/// A stretch of an output that still holds what `fill_random` put there before the call.
struct unwritten {
  uint64_t first = 0;
  uint64_t bytes = 0;
};
/// The first one of at least 64 bytes and 16 elements, as random values come together by chance
/// only where they are few: of bools nothing is said. `repeats` as `fill_random` does on a real
/// device.
std::optional<unwritten> find_unwritten(
  const resolved_buffer& what, std::span<const std::byte> content, tensor_key key, bool repeats);

/// Another stream of the same fill for each buffer.
tensor_key key_of(tensor_key fill, size_t buffer);

/// One workload on a fresh device: memory, module, steps. A modelled device is reset first, so that
/// a pass sees nothing of another and a time does not depend on what ran before. A real one keeps
/// its modules; every buffer then lies at an address that is drawn.
class runner_pass {
public:
  /// `fill` makes what scratch and poisoned outputs hold, and draws addresses.
  runner_pass(runner_device gpu, const child_context& context, const run_pass& pass,
    unit_store& units, const tensor_key& fill);
  runner_pass(const runner_pass&) = delete;
  runner_pass& operator=(const runner_pass&) = delete;
  /// Frees what the device maps before the host memory behind it goes.
  ~runner_pass();

  /// Runs all steps in full, checks what a call must leave as it was, and writes the outputs.
  /// Appends to `findings`, without a workload's name.
  pass_result<void> check(std::vector<finding>& findings);
  /// Runs all steps once and waits for the device. Nothing is put into outputs and undefined
  /// scratch before and nothing is read after, so that a sanitizer sees what nobody has written.
  pass_result<void> call();
  /// Times the steps; the memory of a modelled device holds nothing meaningful afterwards.
  pass_result<call_time> time();

private:
  pass_result<void> set_up();
  pass_result<void> allocate(size_t buffer);
  pass_result<void> zero(size_t buffer);
  pass_result<void> digest_inputs(std::vector<uint64_t>& into);
  pass_result<void> run_steps();
  pass_result<void> run_step(const call_step& step);
  pass_result<void> wait();
  pass_result<void> check_inputs(
    const std::vector<uint64_t>& before, std::vector<finding>& findings);
  pass_result<void> check_restored() const;
  pass_result<void> write_output(size_t buffer, std::vector<finding>& findings) const;

  runner_device on_;
  device& gpu_;
  cuda_device* real_;
  const child_context& context_;
  const run_pass& pass_;
  unit_store& units_;
  tensor_key fill_;
  module_handle module_;
  /// In the order of the pass's buffers; 0 for an empty one.
  std::vector<device_pointer> addresses_;
  std::vector<mapped_file> mapped_;
  std::vector<call_step> steps_;
};

} // namespace gristmill
