#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/measured_call.hpp"
#include "gpu/cuda/module_table.hpp"
#include "gpu/cuda/stream_plan.hpp"

#include <optional>
#include <span>
#include <vector>

namespace gristmill::cuda {

/// Puts the steps of a call on the device, branches on streams of their own. Everything begins
/// behind what stream 0 has to do, and stream 0 goes on when everything is done.
class call_enqueuer {
public:
  /// All of them outlive this.
  call_enqueuer(
    driver_ptr api, stream_handle stream, module_table& modules, const device_memory& memory);
  ~call_enqueuer() { release(); }
  call_enqueuer(const call_enqueuer&) = delete;
  call_enqueuer& operator=(const call_enqueuer&) = delete;

  /// Gives streams and events back; to be called before the context goes. Nothing is enqueued any
  /// more.
  void release();

  /// As `cuda_device::enqueue_call`; a fault of an earlier kernel is `device_fault`.
  result<void> enqueue(std::span<const call_step> steps);
  /// One launch on stream 0; a fault that the driver tells at once is in the report.
  result<launch_report> launch(gristmill::function_handle function, const launch_shape& shape,
    std::span<const uint8_t> parameters);
  result<void> memset(
    address to, uint64_t bytes, uint32_t width, uint32_t value, stream_handle stream) const;
  result<void> copy(address to, address from, uint64_t bytes, stream_handle stream) const;

  /// What a tracer sees of such a call, in the order of the steps.
  result<std::vector<device_activity>> planned(std::span<const call_step> steps) const;
  /// Whether steps of the call may run at the same time.
  result<bool> overlaps(std::span<const call_step> steps) const;
  /// Most local memory a thread that one of the kernels takes.
  result<uint32_t> local_bytes(std::span<const call_step> steps) const;

private:
  result<stream_handle> stream(uint32_t number);
  result<event_handle> event(size_t number);
  result<void> record(size_t number, stream_handle on);
  result<void> wait(size_t number, stream_handle on);
  result<void> put(const call_step& step, stream_handle on);
  /// The driver's answer to a launch, which is one of our failures or a fault.
  result<status> start(gristmill::function_handle function, const launch_shape& shape,
    std::span<const uint8_t> parameters, bool pdl, int carveout, stream_handle on);

  driver_ptr api_;
  module_table& modules_;
  const device_memory& memory_;
  /// The first one is not ours.
  std::vector<stream_handle> streams_;
  /// Number 0 marks the beginning of a call, i + 1 the end of step i.
  std::vector<event_handle> events_;
};

} // namespace gristmill::cuda
