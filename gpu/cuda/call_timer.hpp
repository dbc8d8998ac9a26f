#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_table.hpp"

#include <functional>
#include <memory>

namespace gristmill::cuda {

/// A pair of events on one stream.
class event_pair {
public:
  static result<event_pair> make(driver_ptr api);
  event_pair(event_pair&& other) noexcept;
  event_pair& operator=(event_pair&&) = delete;
  ~event_pair();

  status begin(stream_handle stream) const { return (*api_)->event_record(from_, stream); }
  status end(stream_handle stream) const { return (*api_)->event_record(to_, stream); }
  /// Waits for the second event. Nanoseconds; resolution of the driver, about 500 ns.
  status read(uint64_t& ns) const;

private:
  explicit event_pair(driver_ptr api) : api_(std::move(api)) {}
  driver_ptr api_;
  event_handle from_ = nullptr;
  event_handle to_ = nullptr;
};

/// Takes the samples of one call (`cuda_device::time_calls`).
class call_timer {
public:
  /// `l2_bytes` decides how much is flushed. Errors of the driver as failures.
  static result<std::unique_ptr<call_timer>> make(
    driver_ptr api, device_id device, stream_handle stream, uint64_t l2_bytes);
  ~call_timer();
  call_timer(const call_timer&) = delete;
  call_timer& operator=(const call_timer&) = delete;

  /// A driver error of a sample comes back as `device_fault` with the driver's words.
  result<call_samples> take(const cuda_device::enqueue& call, const timing_protocol& how);

private:
  call_timer(driver_ptr api, stream_handle stream, device_memory memory, event_pair events)
    : api_(std::move(api)), stream_(stream), memory_(std::move(memory)),
      events_(std::move(events)) {}

  result<void> flush(flush_kind how);
  result<uint64_t> sample(const cuda_device::enqueue& call, const timing_protocol& how, bool gated);
  result<uint32_t> warm_up(const cuda_device::enqueue& call, const timing_protocol& how);
  failure said(status bad) const;

  driver_ptr api_;
  stream_handle stream_;
  device_memory memory_;
  event_pair events_;
  address scratch_ = 0;
  uint64_t scratch_bytes_ = 0;
  cuda::module_handle reader_ = nullptr;
  cuda::function_handle read_ = nullptr;
  /// The device waits until this word of the host is 1.
  uint32_t* gate_ = nullptr;
  address gate_on_device_ = 0;
};

} // namespace gristmill::cuda
