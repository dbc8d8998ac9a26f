#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace gristmill {

/// Writes a raw little-endian contiguous tensor. The file appears under its name only when it is
/// complete, so a reader never sees half of one. Fails with `io_failed`.
result<void> write_tensor_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// A tensor file mapped read-only into memory, unmapped with the object.
class mapped_file {
public:
  /// `not_found` when there is no such file, `invalid_input` when its size is not
  /// `expected_bytes`, `io_failed` when the system refuses.
  static result<mapped_file> open(const std::filesystem::path& path, uint64_t expected_bytes);

  mapped_file() = default;
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  mapped_file(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace gristmill
