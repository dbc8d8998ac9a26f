#pragma once

#include "gpu/device.hpp"
#include "messages/measure.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What the L2 cache holds when a timed call begins. `official` writes twice its size, as
/// SOL-ExecBench does, and leaves it full of dirty lines; `clean` reads as much, so that nothing is
/// left to be written back.
enum class flush_kind : uint8_t { official = 0, clean };

/// "official" or "clean".
std::string to_string(flush_kind kind);

/// How calls are timed on a real device.
struct timing_protocol {
  /// Load before the first sample, so that clocks and caches are what they stay. It goes on in
  /// quarters of that, nine at most, until two readings of the canary differ by less than 1 %.
  std::chrono::nanoseconds warm_up = std::chrono::milliseconds{300};
  /// Calls of a warm-up at least, however long they take.
  uint32_t warm_up_calls = 3;
  uint32_t samples = 50;
  /// No sample is begun after this much time; fewer samples than asked for are then told.
  std::chrono::nanoseconds limit = std::chrono::seconds{30};
  flush_kind flush = flush_kind::official;
  /// Take the samples by traced activities where the device was opened for that.
  bool trace = true;
  /// Trace as if kernels of the call overlapped, as SOL-ExecBench does with every call. CUPTI then
  /// adds instructions to each block, and a kernel of many short blocks takes up to a tenth longer.
  bool trace_overlapping = false;
};

/// For deadlines: a warm-up that goes on until the canary is stable ends within so many times the
/// length that was asked for.
constexpr uint32_t warm_up_stretch = 12;

/// One step of a call, all of it resolved: what `resolved_step` becomes on a device.
struct call_step {
  enum class op : uint8_t { launch, memset, copy };

  op what = op::launch;
  /// Indices of the steps that must be complete before this one; all are smaller than its own.
  /// Steps that do not wait for each other run at the same time.
  std::vector<uint32_t> after;

  // launch
  function_handle function;
  launch_shape shape;
  /// May begin while the launch before it still runs (programmatic dependent launch). Refused on
  /// the first launch of a call, and where `after` is not the one launch before it.
  bool pdl = false;
  /// Share of the L1 cache that becomes shared memory, in percent; -1 leaves it to the driver.
  int carveout = -1;
  std::vector<uint8_t> parameters;

  // memset and copy; of 0 bytes they do nothing
  device_pointer to = 0;
  device_pointer from = 0;
  uint64_t bytes = 0;
  /// Of a memset: 1, 2 or 4 bytes of `value`, over and over.
  uint32_t width = 1;
  uint32_t value = 0;
};

/// What a call is made for.
enum class call_use : uint8_t {
  warm_up = 0,
  /// Its activities are traced; the sample is the time that they took.
  traced,
  /// Timed by events, enqueued while the device waits.
  behind_wait,
  /// Timed by events while the host enqueues.
  span,
};

/// The two sides of a timed call that belong to whoever knows the workload. Neither is timed, and
/// the device is idle before `prepare` and again before `after`.
struct call_script {
  /// Sets up call `number` and gives its steps, which stay valid until the next `prepare`. Here
  /// buffers are moved, inputs copied, scratch refilled, outputs poisoned. Numbers count all timed
  /// calls of a measurement from 0; a sample that is taken again gets a number of its own. The
  /// warm-up prepares once, number 0, and repeats these steps.
  std::function<result<std::span<const call_step>>(uint32_t number, call_use use)> prepare;
  /// Looks at what the call has left: digests, copies out. Not called after warm-up. May be empty.
  std::function<result<void>(uint32_t number, call_use use)> after;
};

/// What `cuda_device::measure` returns.
struct measured_call {
  /// By activities, or by events where `record.fallback` says why. Nanoseconds.
  std::vector<uint64_t> samples_ns;
  /// `digested`, `digests_equal` and `written_out` are left to the caller.
  timing_record record;
  /// "extra_activity": a call did something that its plan does not say, or not always the same.
  /// "activity_outside_call": something ran on the device that no call of ours began.
  std::vector<finding> findings;
  /// False: the canary still moved by more than 1 % when the warm-up gave up.
  bool canary_stable = false;
};

/// How much more than it needs is allocated for a buffer that begins elsewhere in it at each call.
/// Moving buffers so costs no mapping; the end of the room is the guard.
constexpr uint64_t shift_room = 64 * 1024;

} // namespace gristmill
