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

/// A tensor file that is filled in place: its bytes are those of the file, so that a tensor may be
/// larger than the memory. Appears under its name with `commit`; without it, nothing is left.
class new_tensor_file {
public:
  /// `io_failed` when it cannot be made that large.
  static result<new_tensor_file> create(const std::filesystem::path& path, uint64_t bytes);

  new_tensor_file(new_tensor_file&& other) noexcept;
  new_tensor_file& operator=(new_tensor_file&& other) noexcept;
  new_tensor_file(const new_tensor_file&) = delete;
  new_tensor_file& operator=(const new_tensor_file&) = delete;
  ~new_tensor_file();

  std::span<std::byte> bytes() const { return {data_, size_}; }
  /// Fails with `io_failed`.
  result<void> commit();

private:
  new_tensor_file() = default;

  std::filesystem::path path_;
  /// Empty once committed.
  std::filesystem::path partial_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A tensor file mapped read-only into memory, unmapped with the object.
class mapped_file {
public:
  /// The whole file, whatever its size. `not_found` or `io_failed`.
  static result<mapped_file> open(const std::filesystem::path& path);
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
  /// Lets the memory of the first `count` bytes go; they are read from the file again when somebody
  /// asks for them.
  void release(uint64_t count) const;

private:
  static result<mapped_file> open_sized(
    const std::filesystem::path& path, const uint64_t* expected);
  mapped_file(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace gristmill
