#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/mock/mock_device.hpp"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace gristmill {

/// A device that behaves as a real one towards the runner, on the mock: buffers that move, digests,
/// one context that is lost for good with the first fault. Its times are made up.
class fake_cuda_device final : public cuda_device {
public:
  struct call {
    uint32_t number = 0;
    call_use use = call_use::warm_up;
    std::vector<call_step> steps;
  };

  fake_cuda_device();

  /// Every call that was measured, in order, without the warm-up.
  std::vector<call> calls;
  /// Called for each step of a timed call in place of the step; true when it did what there is to
  /// do.
  std::function<bool(fake_cuda_device&, const call_step&, uint32_t number)> instead;
  /// Nothing more than so many bytes may be allocated.
  uint64_t memory_bytes = UINT64_MAX;
  uint64_t allocated() const;
  /// Where the last buffer of that name was allocated.
  device_pointer named(const std::string& name) const { return names_.at(name); }
  bool lost = false;
  uint32_t modules_loaded = 0;
  /// The samples: 1000 ns and this much more for each.
  uint64_t drift_ns = 0;

  const device_properties& properties() const override { return properties_; }
  result<device_pointer> allocate(uint64_t bytes, std::string name) override;
  result<device_pointer> map_input(std::span<const std::byte> host, std::string name) override;
  result<device_pointer> map_repeated(const std::string& path, uint64_t pattern_bytes,
    uint64_t total_bytes, std::string name) override;
  result<void> free(device_pointer base) override;
  void reset() override;
  result<void> copy_in(device_pointer to, std::span<const std::byte> from) override;
  result<void> copy_out(std::span<std::byte> to, device_pointer from) override;
  result<void> copy(device_pointer to, device_pointer from, uint64_t bytes) override;
  result<void> memset(device_pointer to, uint64_t bytes, uint32_t width, uint32_t value) override;
  result<std::array<uint8_t, tensor_map_bytes>> encode_tensor_map(
    device_pointer base, const tensor_map_spec& spec) override;
  result<module_handle> load_module(std::string_view code) override;
  result<void> unload_module(module_handle module) override;
  result<function_handle> find_function(module_handle module, std::string_view name) override;
  result<function_properties> describe(function_handle function) const override;
  result<uint32_t> occupancy(
    function_handle function, uint32_t threads, uint32_t dynamic_shared) const override;
  result<std::vector<uint8_t>> globals(module_handle module) const override;
  result<void> restore_globals(module_handle module, const std::vector<uint8_t>& bytes) override;
  result<launch_report> launch(function_handle function, const launch_shape& shape,
    std::span<const uint8_t> parameters) override;
  result<launch_report> synchronise() override;
  result<void> begin_timing() override;
  result<call_time> end_timing() override;

  result<void> enqueue_call(std::span<const call_step> steps) override;
  result<measured_call> measure(const call_script& call, const timing_protocol& how) override;
  result<uint64_t> digest(device_pointer from, uint64_t bytes, uint64_t seed) override;
  result<void> fill(device_pointer to, uint64_t bytes, uint64_t seed) override;
  result<range_difference> difference(device_pointer a, device_pointer b, uint64_t bytes) override;
  result<void> park(device_pointer base) override;
  result<device_pointer> move(device_pointer base, uint64_t draw) override;
  result<void> touch(device_pointer from, uint64_t bytes) override;
  result<uint32_t> canary_khz() override;
  result<std::string> assembled_by(module_handle module) const override;
  std::string uuid() const override { return "GPU-fake"; }

private:
  result<void> has_room(uint64_t bytes) const;
  result<device_pointer> keep(result<device_pointer> made, uint64_t bytes);
  result<void> run(std::span<const call_step> steps, const uint32_t* number);
  result<void> take(const call_script& script, uint32_t number, call_use use);
  result<std::vector<std::byte>> bytes_at(device_pointer from, uint64_t bytes);

  std::unique_ptr<device> mock_;
  device_properties properties_;
  std::map<device_pointer, uint64_t> sizes_;
  std::map<std::string, device_pointer> names_;
  std::optional<device_fault> pending_;
};

} // namespace gristmill
