#pragma once

#include "gpu/device.hpp"
#include "gpu/mock/host_memory.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// The memory of the mock device: gives out device addresses and knows what lies behind them.
///
/// Addresses grow in steps of 2 MiB in order of allocation, with at least 2 MiB of nothing behind
/// each buffer, and are not used twice until `reset`.
class arena {
public:
  explicit arena(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  /// Fails with `refused` when the device is full.
  result<device_pointer> add(host_memory memory, uint64_t bytes, bool writable, std::string name);
  result<void> remove(device_pointer base);
  void reset();

  /// Host address of a range that lies in one buffer. Fails with `invalid_input`, also when a range
  /// to be written is read-only.
  result<uint8_t*> find(device_pointer at, uint64_t bytes, bool for_writing) const;
  /// Sets a writable range to zero.
  result<void> clear(device_pointer at, uint64_t bytes);
  /// From now on it is known which bytes of a buffer have been written; so far none.
  void watch(device_pointer base, bool is_output);
  /// A range that lies in one buffer has been written, or copied from another one.
  void define(device_pointer at, uint64_t bytes);
  void define_like(device_pointer to, device_pointer from, uint64_t bytes);
  /// Everything a kernel may touch, in order of address.
  std::vector<ptx::region> regions();
  /// Bytes of the buffers that the values point into, each buffer once.
  uint64_t bytes_behind(const std::vector<uint64_t>& values) const;

private:
  struct buffer {
    host_memory memory;
    uint64_t bytes = 0;
    bool writable = true;
    std::string name;
    bool is_output = false;
    /// A byte for each byte: 1 while nobody has written it. Empty when that is not watched.
    std::vector<uint8_t> undefined;
  };
  using buffers = std::map<device_pointer, buffer>;

  buffers::const_iterator holder(device_pointer at) const;

  uint64_t capacity_;
  uint64_t used_ = 0;
  device_pointer next_ = first_address;
  buffers buffers_;

  static constexpr device_pointer first_address = 0x700'0000'0000;
  static constexpr uint64_t slot = 2 << 20;
};

} // namespace gristmill
