#pragma once

#include "messages/result.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

namespace gristmill {

/// A folder among the temporary files, gone with all that it holds when this object ends.
class scratch_folder {
public:
  /// Its name is `prefix` and six letters. What commands of this prefix left behind that were
  /// killed is removed first. Errors: `io_failed`.
  static result<scratch_folder> create(std::string_view prefix);
  scratch_folder(scratch_folder&& other) noexcept;
  scratch_folder& operator=(scratch_folder&&) = delete;
  ~scratch_folder();

  const std::filesystem::path& path() const { return path_; }

private:
  scratch_folder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  /// Held as long as somebody works here.
  int lock_ = -1;
};

} // namespace gristmill
