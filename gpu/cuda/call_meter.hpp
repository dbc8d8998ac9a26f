#pragma once

#include "gpu/cuda/activity_tracer.hpp"
#include "gpu/cuda/call_enqueuer.hpp"
#include "gpu/cuda/call_timer.hpp"
#include "gpu/cuda/measured_call.hpp"
#include "gpu/cuda/measuring_kernels.hpp"
#include "gpu/cuda/weather_station.hpp"

#include <chrono>
#include <string>

namespace gristmill::cuda {

/// What a measurement works with; all of it outlives the meter.
struct meter_parts {
  call_enqueuer& calls;
  call_timer& timer;
  measuring_kernels& kernels;
  /// Null where nothing is traced; `why_no_tracer` then says why.
  activity_tracer* tracer = nullptr;
  std::string why_no_tracer;
  /// Null where nobody watches.
  weather_station* weather = nullptr;
};

/// One measurement (`cuda_device::measure`): warm-up, traced samples, samples by events.
class call_meter {
public:
  call_meter(meter_parts parts, const call_script& script, const timing_protocol& how)
    : parts_(std::move(parts)), script_(script), how_(how) {}

  result<measured_call> run();

private:
  using clock = std::chrono::steady_clock;
  using steps = std::span<const call_step>;

  result<void> warm_up();
  /// Fills the samples, or says in `fallback` why they are to be taken by events.
  result<void> take_traced();
  result<void> take_by_events();
  /// Everything of contracts section 10 that comes before the window.
  result<steps> set_up(call_use use);
  result<void> finish(call_use use);
  /// One call by events, as `call_timer::sample` takes it.
  result<uint64_t> timed(steps call, bool gated);
  bool time_is_over(std::chrono::nanoseconds limit) const { return clock::now() - begin_ >= limit; }

  meter_parts parts_;
  const call_script& script_;
  timing_protocol how_;
  clock::time_point begin_;
  measured_call out_;
  /// Of the next timed call.
  uint32_t number_ = 0;
  uint32_t local_bytes_ = 0;
  bool overlaps_ = false;
};

} // namespace gristmill::cuda
