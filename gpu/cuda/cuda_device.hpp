#pragma once

#include "gpu/cuda/measured_call.hpp"
#include "gpu/device.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// How a real device is opened.
struct cuda_options {
  /// Folders where CUPTI and NVML are looked for first; then the loader's own places and
  /// the usual ones of toolkits follow.
  std::vector<std::string> library_folders;
  /// Subscribe to activities (CUPTI) before there is a context. Slows the host a little, so only
  /// processes that measure ask for it. Where it fails, `measure` says why in its fallback.
  bool trace = false;
  /// Watch clocks, power and foreign processes (NVML) while samples are taken.
  bool watch = true;
  /// Buffers by the driver's plain allocation, for a process under compute-sanitizer: nothing is
  /// guarded, moved or read-only then, because the sanitizer looks itself.
  bool plain_memory = false;
};

/// Comparison of two ranges on the device.
struct range_difference {
  /// Words of eight bytes that differ; the last one may be shorter.
  uint64_t words = 0;
  /// Byte offset of the first such word; meaningless when there is none.
  uint64_t first = 0;
};

/// A real GPU through the driver's interface, loaded at run time. Code is PTX text or a cubin.
/// After a kernel faults the context is lost: everything fails from then on, and the process has to
/// end. What no device of this kind can do is told as `unsupported`.
class cuda_device : public device {
public:
  /// Enqueues all steps of a call, branches on streams of their own that are joined at the end.
  /// `invalid_input` for steps that contradict themselves, `refused` for what the device refuses.
  /// What kernels do wrong comes from `synchronise`.
  virtual result<void> enqueue_call(std::span<const call_step> steps) = 0;

  /// Takes the samples of a call (contracts, section 10): for each call `prepare`; then shared
  /// memory, registers and local memory are scrubbed, persisting lines of L2 given up, and L2
  /// flushed; then the call; then `after`. Fails with `device_fault` when a kernel faulted, with
  /// `timed_out` when not even one sample could be taken within the limit, and as the script does.
  virtual result<measured_call> measure(const call_script& call, const timing_protocol& how) = 0;

  /// A hash of `bytes` at `from`, which is a multiple of 8, made on the device. Every bit counts,
  /// and so does its place. Another seed gives another hash.
  virtual result<uint64_t> digest(device_pointer from, uint64_t bytes, uint64_t seed) = 0;
  /// Enqueues filling with bytes that the seed decides; `to` is a multiple of 8.
  virtual result<void> fill(device_pointer to, uint64_t bytes, uint64_t seed) = 0;
  /// Compares on the device; both addresses are multiples of 8.
  virtual result<range_difference> difference(
    device_pointer a, device_pointer b, uint64_t bytes) = 0;

  /// Takes a buffer off the device's addresses: nothing reaches it until `move`. Its content stays,
  /// and `base` stays its name.
  virtual result<void> park(device_pointer base) = 0;
  /// Maps a buffer, parked or not, at another place that `draw` chooses among 1,024, with its
  /// guards; its content and whether kernels may write it stay. The old base is no longer one.
  virtual result<device_pointer> move(device_pointer base, uint64_t draw) = 0;

  /// Enqueues a read of every page from every multiprocessor, so that a buffer that was moved a
  /// moment ago costs a call no more than one that never was.
  virtual result<void> touch(device_pointer from, uint64_t bytes) = 0;

  /// Clock of a multiprocessor in kHz, by a kernel that counts cycles for about two milliseconds.
  virtual result<uint32_t> canary_khz() = 0;
  /// "the driver 13.0" or "given as a cubin".
  virtual result<std::string> assembled_by(module_handle module) const = 0;
  /// "GPU-…", as NVML and CUDA both name it.
  virtual std::string uuid() const = 0;
};

/// Device number `ordinal` of this process, in the driver's order. `unsupported` without a driver,
/// `not_found` for a number beyond the last. A process that has called this must not fork.
result<std::unique_ptr<cuda_device>> open_cuda_device(int ordinal, const cuda_options& how = {});

/// How many there are; `unsupported` without a driver.
result<int> cuda_device_count();

} // namespace gristmill
