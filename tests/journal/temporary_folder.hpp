#pragma once

#include <filesystem>
#include <stdlib.h>
#include <string>

namespace gristmill {

/// A folder that is gone again when the test is over.
struct temporary_folder {
  std::filesystem::path path;

  temporary_folder() {
    auto name = (std::filesystem::temp_directory_path() / "gristmill-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
};

} // namespace gristmill
