#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/measured_call.hpp"
#include "gpu/cuda/measuring_kernels.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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

/// A word of host memory on which the device waits until the host has enqueued a whole call. Should
/// the driver itself wait for the device meanwhile, a thread of ours opens it after two seconds, so
/// that nothing hangs for ever.
class call_gate {
public:
  static result<std::unique_ptr<call_gate>> make(driver_ptr api, stream_handle stream);
  ~call_gate();
  call_gate(const call_gate&) = delete;
  call_gate& operator=(const call_gate&) = delete;

  /// The stream waits from here on.
  result<void> close();
  /// False when it had to be opened by itself: what was enqueued behind it was not in time.
  bool open();

private:
  call_gate(driver_ptr api, stream_handle stream) : api_(std::move(api)), stream_(stream) {}
  void watch();

  driver_ptr api_;
  stream_handle stream_;
  uint32_t* word_ = nullptr;
  address word_on_device_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool opened_late_ = false;
  bool over_ = false;
  /// Counts closings, so that a late wake-up opens no newer one.
  uint64_t closings_ = 0;
  std::thread watcher_;
};

/// Takes single samples of a call by events.
class call_timer {
public:
  /// Enqueues the steps of a call; called many times.
  using enqueue = std::function<result<void>()>;

  /// `l2_bytes` decides how much is flushed. Errors of the driver as failures. The kernels outlive
  /// this.
  static result<std::unique_ptr<call_timer>> make(driver_ptr api, device_id device,
    stream_handle stream, uint64_t l2_bytes, measuring_kernels& kernels);

  /// Gives persisting lines of L2 up and enqueues the flush.
  result<void> flush(flush_kind how);
  /// Enqueues the call between two events and waits for its end. With `gated` the device begins
  /// when all of it is enqueued; else the device is idle when the host begins. Nanoseconds.
  /// `device_fault` with the driver's words; `timed_out` when the gate opened by itself.
  result<uint64_t> sample(const enqueue& call, bool gated);
  /// The call over and over for that long; returns how often.
  result<uint32_t> load(const enqueue& call, std::chrono::nanoseconds time, uint32_t calls_min,
    std::chrono::nanoseconds limit);

private:
  call_timer(driver_ptr api, stream_handle stream, device_memory memory, event_pair events,
    std::unique_ptr<call_gate> gate, measuring_kernels& kernels)
    : api_(std::move(api)), stream_(stream), memory_(std::move(memory)), events_(std::move(events)),
      gate_(std::move(gate)), kernels_(kernels) {}
  tl::unexpected<failure> said(status bad) const;

  driver_ptr api_;
  stream_handle stream_;
  device_memory memory_;
  event_pair events_;
  std::unique_ptr<call_gate> gate_;
  measuring_kernels& kernels_;
  address scratch_ = 0;
  uint64_t scratch_bytes_ = 0;
};

} // namespace gristmill::cuda
