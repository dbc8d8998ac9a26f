#pragma once

#include "gpu/toolchain/compile_input.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <filesystem>
#include <string>

namespace gristmill {

/// A clang that can make PTX, found on this machine.
struct clang_command {
  /// Absolute path of the program.
  std::string program;
  /// "clang-19.1.7"; part of the cache key.
  std::string version;
};

/// Looks along `path` (the value of PATH) for clang++-19, then clang-19, and asks it for its
/// version. Fails with `not_found`, naming the package to install.
result<clang_command> find_clang(const std::string& path);

/// Compiles with clang, device pass only, with our device header instead of a CUDA toolkit, and
/// checks the PTX: its entries are the kernels that clang knows, its parameters have the sizes of
/// the launch plan, its directives are on the allow-list.
///
/// `folder` is private, writable and absolute; its content is overwritten. The same input gives the
/// same PTX, whatever the folder is called. `limit` is wall time for each run of the compiler; past
/// it the answer is compile_error. Fails with `io_failed` when files or the process cannot be made,
/// and with `invalid_input` for options outside of the allow-list (define names and values,
/// architecture, std).
result<compile_output> compile_with_clang(const compile_input& input,
  const std::filesystem::path& folder, const clang_command& clang,
  std::chrono::milliseconds limit = std::chrono::seconds(60));

/// SHA-256 over everything that decides the result: source, unit, options, architecture, compiler
/// version and the device header.
std::string cache_key(const compile_input& input, const clang_command& clang);

} // namespace gristmill
