#pragma once

#include "gpu/toolchain/compile_input.hpp"
#include "gpu/toolchain/device_compiler.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

/// What the tests of emulation compile with.
namespace gristmill::testing {

/// Removed with its content.
class scratch_folder {
public:
  scratch_folder() {
    std::string made =
      (std::filesystem::temp_directory_path() / "gristmill-emulate-test-XXXXXX").string();
    if (mkdtemp(made.data()) != nullptr)
      path_ = made;
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

inline result<clang_command> clang() {
  const char* path = std::getenv("PATH");
  return find_clang(path != nullptr ? path : "/usr/bin:/bin");
}

/// With line numbers, for an H200.
inline result<compile_output> compile(const std::string& source, const compile_unit& unit,
  const plan_options& options, const clang_command& with) {
  const scratch_folder folder;
  return compile_with_clang({source, unit, options, "sm_90a", true}, folder.path(), with);
}

/// The same with NVRTC, for kernels that clang cannot compile.
inline result<device_compiler> nvrtc() {
  const char* programs = std::getenv("GRISTMILL_BIN");
  return find_device_compiler("nvrtc", programs != nullptr ? programs : ".",
    [](const char* name) -> const char* { return std::getenv(name); });
}

inline result<compile_output> compile(const std::string& source, const compile_unit& unit,
  const plan_options& options, const device_compiler& with) {
  const scratch_folder folder;
  const char* programs = std::getenv("GRISTMILL_BIN");
  return compile_device_code({source, unit, options, "sm_90a", true}, folder.path(), with,
    (std::filesystem::path(programs != nullptr ? programs : ".") / nvrtc_program_name).string());
}

} // namespace gristmill::testing
