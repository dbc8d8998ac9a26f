#pragma once

#include "gpu/children/call_order.hpp"
#include "gpu/children/runner_pass.hpp"
#include "gpu/children/written_calls.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// A case whose inputs timed calls get.
struct timed_case {
  /// As the job numbers it.
  uint32_t check = 0;
  const run_pass* pass = nullptr;
  /// Its outputs were checked and lie in the files of the pass, to compare with.
  bool has_outputs = false;
};

/// What the timed calls of one workload gave.
struct timed_workload {
  std::vector<uint64_t> samples_ns;
  timing_record record;
  /// Timed calls that the judge is to look at; their outputs are written.
  std::vector<written_call> written;
  std::vector<finding> findings;
  /// What a reader of the figures must know, in words; empty for nothing.
  std::string remarks;
};

/// Times one workload on a real device, so that nothing but computing the answer pays
/// (docs/measuring.md).
///
/// The inputs of all cases stay on the device, as far as its memory goes. Each call gets a copy of
/// those of one case, which it cannot foresee, at addresses that it cannot foresee; its scratch is
/// refilled, and its outputs hold those of another case. After it, a digest of each output is
/// compared with that of the checked run.
class timed_calls {
public:
  /// `workload`: its number in the job, for the draws.
  timed_calls(
    runner_device gpu, const child_context& context, unit_store& units, uint32_t workload);
  timed_calls(const timed_calls&) = delete;
  timed_calls& operator=(const timed_calls&) = delete;
  ~timed_calls();

  /// At least one case; all have the buffers and steps of the first. Once.
  pass_result<timed_workload> take(const std::vector<timed_case>& cases);

private:
  /// Copies of one case in the device's memory, in the order of the buffers; 0 for none.
  struct master {
    std::vector<device_pointer> contents;
    std::vector<uint64_t> digests;
  };

  pass_result<void> set_up(const std::vector<timed_case>& cases);
  pass_result<void> allocate_work();
  /// Nothing where the device is full.
  pass_result<std::optional<master>> load(const timed_case& one);
  pass_result<void> draw_poison();
  void release(const master& what);

  pass_result<void> prepare(uint32_t number);
  pass_result<void> refill_room(size_t buffer, uint64_t seed);
  pass_result<void> fill_buffer(size_t buffer);
  pass_result<void> look(uint32_t number);
  pass_result<void> check_inputs();
  pass_result<void> check_restored();
  pass_result<void> check_globals();
  pass_result<bool> outputs_equal();
  pass_result<void> write_out(uint32_t number);
  void forget(uint32_t number);
  void note(const char* rule, std::string what);
  timing_protocol protocol() const;
  std::string remarks(const measured_call& measured, size_t asked) const;

  const resolved_buffer& buffer(size_t index) const { return pass_->buffers[index].what; }

  runner_device on_;
  cuda_device& gpu_;
  const child_context& context_;
  unit_store& units_;
  uint32_t workload_;
  const run_pass* pass_ = nullptr;
  std::vector<timed_case> cases_;
  std::optional<call_builder> builder_;
  std::optional<call_order> order_;
  std::optional<written_calls> tally_;
  module_handle module_;
  std::vector<uint8_t> globals_;
  std::vector<mapped_file> mapped_;
  /// Where calls work, with `shift_room` more than they need; in the order of the buffers.
  std::vector<device_pointer> work_;
  /// Of restored scratch: the digest of its work space when all of it is zero.
  std::vector<uint64_t> zero_digests_;
  std::vector<master> masters_;
  /// Plausible outputs of nobody, for where no other case has any.
  master poison_;

  drawn_call now_;
  std::vector<device_pointer> addresses_;
  std::vector<call_step> steps_;
  /// The case of each call that was written, by the call's number.
  std::vector<std::pair<uint32_t, uint32_t>> case_of_written_;
  std::vector<finding> findings_;
};

} // namespace gristmill
