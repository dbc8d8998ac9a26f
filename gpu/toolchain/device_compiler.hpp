#pragma once

#include "gpu/toolchain/clang_toolchain.hpp"
#include "gpu/toolchain/compile_input.hpp"
#include "gpu/toolchain/nvrtc_toolchain.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace gristmill {

/// A compiler of device code that was found on this machine, of either kind.
struct device_compiler {
  /// The program of clang, or the library of NVRTC.
  std::string path;
  /// "clang-19.1.7" or "nvrtc-13.0": says which of the two it is, and is part of the cache key.
  std::string version;

  bool is_nvrtc() const { return version.starts_with("nvrtc-"); }
};

/// The program that runs NVRTC, which lies beside ours.
constexpr const char* nvrtc_program_name = "gristmill-nvrtc";

/// What `--toolchain` asks for: "clang", "nvrtc", or "auto", which is NVRTC where it can be used
/// and clang else. `programs` is the folder of our programs. Fails with `not_found` and names what
/// is missing; for "auto" only when there is neither.
result<device_compiler> find_device_compiler(const std::string& toolchain,
  const std::filesystem::path& programs,
  const std::function<const char*(const char*)>& environment);

/// Compiles with the one or the other. `start` is the program to run: clang's, or gristmill-nvrtc,
/// or a script that starts it with more limits. Errors as those of the two.
result<compile_output> compile_device_code(const compile_input& input,
  const std::filesystem::path& folder, const device_compiler& compiler, const std::string& start,
  std::chrono::milliseconds limit = std::chrono::seconds(60));

/// SHA-256 over everything that decides the result, the compiler's version included.
std::string cache_key(const compile_input& input, const device_compiler& compiler);

} // namespace gristmill
