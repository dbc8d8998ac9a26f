#pragma once

#include "gpu/device.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// What the L2 cache holds when a timed call begins. `official` writes twice its size, as
/// SOL-ExecBench does, and leaves it full of dirty lines; `clean` reads as much, so that nothing is
/// left to be written back.
enum class flush_kind : uint8_t { official = 0, clean };

std::string to_string(flush_kind kind);

/// How calls are timed on a real device.
struct timing_protocol {
  /// Load before the first sample, so that clocks and caches are what they stay.
  std::chrono::nanoseconds warm_up = std::chrono::milliseconds{300};
  /// Calls of a warm-up at least, however long they take.
  uint32_t warm_up_calls = 3;
  uint32_t samples = 50;
  /// No sample is begun after this much time; fewer samples than asked for are then told.
  std::chrono::nanoseconds limit = std::chrono::seconds{30};
  flush_kind flush = flush_kind::official;
};

/// Times of one call, sample by sample, by events of the driver.
struct call_samples {
  /// From its first step to the end of its last on the device: all of it was enqueued behind a wait
  /// before the device began, so that the host's enqueuing costs nothing.
  std::vector<uint64_t> device_ns;
  /// The same while the host enqueues, as a benchmark in PyTorch sees it.
  std::vector<uint64_t> span_ns;
  uint32_t warm_up_calls = 0;
};

/// A real GPU through the driver's interface, loaded at run time. Code is PTX text or a cubin.
/// After a kernel faults the context is lost: everything fails from then on, and the process has to
/// end. What no device of this kind can do is told as `unsupported`.
class cuda_device : public device {
public:
  /// Enqueues the steps of a call; called many times.
  using enqueue = std::function<result<void>()>;

  /// Times a call. Fails with `device_fault` when a kernel faulted, with `timed_out` when not even
  /// one sample could be taken within the limit.
  virtual result<call_samples> time_calls(const enqueue& call, const timing_protocol& how) = 0;
};

/// Device number `ordinal` of this process, in the driver's order. `unsupported` without a driver,
/// `not_found` for a number beyond the last.
result<std::unique_ptr<cuda_device>> open_cuda_device(int ordinal);

/// How many there are; `unsupported` without a driver.
result<int> cuda_device_count();

} // namespace gristmill
