#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace gristmill {

/// A cassette that is being written: lines are appended whole, or not at all.
class cassette_file {
public:
  /// A new file; one that exists must be empty. `invalid_input` otherwise, `io_failed`, or
  /// `refused` when another program is writing it.
  static result<cassette_file> create(const std::filesystem::path& file);
  /// Goes on at `whole_bytes`: what is torn behind it is cut off. The file may be missing.
  static result<cassette_file> append(const std::filesystem::path& file, size_t whole_bytes);

  cassette_file(cassette_file&& other) noexcept;
  cassette_file& operator=(cassette_file&& other) noexcept;
  /// With what was written on the disk.
  ~cassette_file();

  /// `io_failed` when the disk is full or gone; the part of the line that was written is taken
  /// back.
  result<void> write(std::string_view line);

private:
  cassette_file(std::filesystem::path path, int file, uint64_t size)
    : path_(std::move(path)), file_(file), size_(size) {}
  static result<cassette_file> open(const std::filesystem::path& path);

  std::filesystem::path path_;
  int file_ = -1;
  uint64_t size_ = 0;
};

} // namespace gristmill
