#pragma once

#include "gpu/toolchain/clang_toolchain.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace gristmill::test {

/// clang-19 of this machine, or nothing, said aloud.
inline std::optional<clang_command> clang_or_skip() {
  const char* path = std::getenv("PATH");
  auto found = find_clang(path == nullptr ? "" : path);
  if (found)
    return *found;
  MESSAGE("SKIPPED: " << found.error().what);
  return std::nullopt;
}

/// A fresh folder that is removed afterwards.
class scratch_folder {
public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gristmill-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

inline compile_output compile_or_fail(const compile_input& input, const clang_command& clang) {
  const scratch_folder folder;
  auto out = compile_with_clang(input, folder.path(), clang);
  REQUIRE_MESSAGE(out, (out ? std::string() : out.error().what));
  return std::move(*out);
}

/// A unit with one entry that takes nothing.
inline compile_input simple_input(std::string source, std::string entry = "k") {
  compile_input input;
  input.source = std::move(source);
  input.arch = "sm_90a";
  input.unit.entries.push_back({std::move(entry), {}, {}, {}});
  return input;
}

/// A file below the root of the source tree; nothing, said aloud, when it is not known.
inline std::optional<std::string> source_file(const std::string& name) {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  if (root == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SOURCE is not set");
    return std::nullopt;
  }
  std::ifstream in(std::filesystem::path(root) / name, std::ios::binary);
  REQUIRE_MESSAGE(in, name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

} // namespace gristmill::test
