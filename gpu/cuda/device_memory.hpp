#pragma once

#include "gpu/cuda/driver_table.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace gristmill::cuda {

/// How buffers are made.
enum class memory_kind : uint8_t {
  /// Mapped, with guards, as below.
  guarded = 0,
  /// By the driver's plain allocation, one a buffer, so that compute-sanitizer knows where each
  /// ends and which bytes were written. Nothing moves and nothing is read-only.
  plain,
};

/// Device memory in ranges of virtual addresses, one a buffer, with unmapped guards before and
/// behind it: an access beyond a buffer faults instead of reading a neighbour. Buffers end at their
/// guard (within the 255 bytes that keep their base a multiple of 256).
class device_memory {
public:
  /// Errors of the driver: `unsupported` when the device has no virtual memory management.
  static result<device_memory> make(
    driver_ptr api, device_id device, memory_kind kind = memory_kind::guarded);
  device_memory(device_memory&& other) = default;
  device_memory& operator=(device_memory&&) = delete;
  ~device_memory() { free_all(); }

  /// Not initialised. `refused` when the device is full.
  result<address> allocate(uint64_t bytes, std::string name);
  /// From here on kernels fault when they write to it.
  result<void> make_read_only(address base);
  /// Unmaps a buffer: nothing reaches it until `move`. Its content stays, and so does its name.
  result<void> park(address base);
  /// Maps a buffer at another place that `draw` chooses among 1,024; the device is idle. Its
  /// content and whether kernels may write it stay. Returns the new base; the old one is none any
  /// more.
  result<address> move(address base, uint64_t draw);
  /// `invalid_input` when no buffer begins there.
  result<void> free(address base);
  void free_all();

  /// `invalid_input`, naming the nearest buffer, unless the bytes lie within one.
  result<void> check(address at, uint64_t bytes) const;
  /// "`weight`", with its size, for the text of a fault.
  std::string describe_buffers() const;

private:
  struct range {
    address reserved = 0;
    size_t reserved_bytes = 0;
    address mapped = 0;
    size_t mapped_bytes = 0;
    memory_handle memory = 0;
    uint64_t bytes = 0;
    bool read_only = false;
    /// The reservation has room for all places of `move`.
    bool roams = false;
    std::string name;
  };

  device_memory(driver_ptr api, device_id device, size_t granularity, memory_kind kind)
    : api_(std::move(api)), device_(device), granularity_(granularity), kind_(kind) {}
  result<address> allocate_plain(range r);
  /// The buffer that begins there; `invalid_input` when none does.
  result<range*> range_at(address base);
  void release(const range& r);
  result<void> set_access(const range& r) const;
  void unmap(range& r);

  driver_ptr api_;
  device_id device_ = 0;
  size_t granularity_ = 0;
  memory_kind kind_ = memory_kind::guarded;
  /// By the buffer's base.
  std::map<address, range> ranges_;
};

} // namespace gristmill::cuda
