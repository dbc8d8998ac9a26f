#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace gristmill {

/// A range of host pages that is unmapped with its owner, or a borrowed one that is not.
class host_memory {
public:
  host_memory() = default;
  host_memory(host_memory&& other) noexcept;
  host_memory& operator=(host_memory&& other) noexcept;
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;
  ~host_memory();

  /// Zero pages that take no memory until they are touched.
  static result<host_memory> anonymous(uint64_t bytes);
  /// The first `pattern_bytes` of the file, read-only, over and over. See `device::map_repeated`.
  static result<host_memory> repeated(
    const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes);
  /// The caller's memory.
  static host_memory borrowed(uint8_t* data) { return {data, 0}; }

  uint8_t* data() const { return data_; }
  /// Sets a range to zero; of owned pages that are whole it gives the memory back.
  void clear(uint64_t offset, uint64_t bytes);

private:
  host_memory(uint8_t* data, uint64_t mapped) : data_(data), mapped_(mapped) {}

  uint8_t* data_ = nullptr;
  /// 0 when borrowed.
  uint64_t mapped_ = 0;
};

} // namespace gristmill
