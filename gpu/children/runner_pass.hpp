#pragma once

#include "gpu/device.hpp"
#include "messages/measure.hpp"
#include "protocol/child_program.hpp"
#include "protocol/job.hpp"
#include "tensors/philox.hpp"
#include "tensors/tensor_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// How a pass ended when it did not end well.
struct pass_failure {
  /// runtime_error and timeout are the candidate's, infrastructure is ours.
  verdict_status status = verdict_status::infrastructure;
  std::string detail;
  /// Set when a kernel faulted.
  std::optional<device_fault> fault;
};

template <class T>
using pass_result = tl::expected<T, pass_failure>;

/// One workload on a fresh device: memory, module, steps. The device is reset first, so that a pass
/// sees nothing of another and a modelled time does not depend on what ran before.
class runner_pass {
public:
  /// `code` is the text of the unit; `fill` makes what scratch and poisoned outputs hold.
  runner_pass(device& gpu, const child_context& context, const run_pass& pass, const run_unit& unit,
    const std::string& code, const tensor_key& fill);
  runner_pass(const runner_pass&) = delete;
  runner_pass& operator=(const runner_pass&) = delete;
  /// Frees what the device maps before the host memory behind it goes.
  ~runner_pass();

  /// Runs all steps in full, checks what a call must leave as it was, and writes the outputs.
  /// Appends to `findings`, without a workload's name.
  pass_result<void> check(std::vector<finding>& findings);
  /// Times the steps; the memory of a modelled device holds nothing meaningful afterwards.
  pass_result<call_time> time();

private:
  pass_result<void> set_up();
  pass_result<void> allocate(const run_buffer& buffer);
  pass_result<void> find_functions();
  pass_result<void> fill_random(size_t buffer, bool plausible);
  pass_result<void> zero(size_t buffer);
  pass_result<void> run_steps();
  pass_result<void> run_step(size_t step);
  pass_result<void> check_restored() const;
  pass_result<void> write_output(size_t buffer) const;

  device& gpu_;
  const child_context& context_;
  const run_pass& pass_;
  const run_unit& unit_;
  const std::string& code_;
  tensor_key fill_;
  module_handle module_;
  /// In the order of the pass's buffers; 0 for an empty one.
  std::vector<device_pointer> addresses_;
  std::vector<mapped_file> mapped_;
  /// In the order of the steps; default for those that launch nothing.
  std::vector<function_handle> functions_;
  std::vector<std::vector<uint8_t>> parameters_;
};

} // namespace gristmill
