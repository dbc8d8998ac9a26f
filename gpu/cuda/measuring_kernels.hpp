#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/driver_table.hpp"

#include <map>
#include <memory>
#include <span>

namespace gristmill::cuda {

/// The kernels of `measuring_ptx`, loaded on a device. What says "enqueues" does not wait. Errors
/// of the driver as `failure_of` gives them.
class measuring_kernels {
public:
  static result<std::unique_ptr<measuring_kernels>> make(
    driver_ptr api, device_id device, stream_handle stream, const device_properties& properties);
  ~measuring_kernels();
  measuring_kernels(const measuring_kernels&) = delete;
  measuring_kernels& operator=(const measuring_kernels&) = delete;

  result<uint64_t> digest(address from, uint64_t bytes, uint64_t seed);
  result<range_difference> difference(address a, address b, uint64_t bytes);
  /// Enqueues.
  result<void> fill(address to, uint64_t bytes, uint64_t seed);
  /// Enqueues reading `bytes`, past the first level of cache.
  result<void> read(address from, uint64_t bytes);
  /// Enqueues reading a byte of every page of 64 KiB from every multiprocessor, so that addresses
  /// mapped a moment ago are known to it.
  result<void> touch(address from, uint64_t bytes);
  /// Clock in kHz.
  result<uint32_t> canary();
  /// Enqueues the scrubbing of shared memory, registers and so much local memory a thread.
  result<void> scrub(uint32_t local_bytes);

private:
  enum entry : size_t {
    entry_read = 0,
    entry_digest,
    entry_fill,
    entry_differ,
    entry_touch,
    entry_canary,
    entry_count
  };

  measuring_kernels(
    driver_ptr api, stream_handle stream, const device_properties& properties, device_memory memory)
    : api_(std::move(api)), stream_(stream), sm_count_(properties.sm_count),
      shared_bytes_(static_cast<uint32_t>(properties.shared_per_block)),
      memory_(std::move(memory)) {}
  result<void> launch(function_handle function, unsigned blocks, unsigned threads, unsigned shared,
    std::span<const uint64_t> parameters);
  unsigned blocks_for(uint64_t bytes) const;
  /// Two words of the result, set before and read after.
  result<void> set_words(uint64_t first, uint64_t second);
  result<std::array<uint64_t, 2>> words();

  driver_ptr api_;
  stream_handle stream_;
  uint32_t sm_count_;
  uint32_t shared_bytes_;
  device_memory memory_;
  address words_ = 0;
  module_handle module_ = nullptr;
  std::array<function_handle, entry_count> functions_{};
  struct scrubber {
    module_handle module = nullptr;
    function_handle function = nullptr;
  };
  /// By bytes of local memory.
  std::map<uint32_t, scrubber> scrubbers_;
};

} // namespace gristmill::cuda
