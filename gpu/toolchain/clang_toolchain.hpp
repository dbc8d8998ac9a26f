#pragma once

#include "messages/compile.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

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

/// One unit to compile: the same source gives one unit for each set of defines.
struct compile_input {
  /// The candidate's .cu text.
  std::string source;
  compile_unit unit;
  plan_options options;
  /// "sm_90a"
  std::string arch;
};

/// What came of it. A candidate that does not compile is an answer, not an error.
struct compile_output {
  /// passed, compile_error or reward_hack.
  verdict_status status = verdict_status::compile_error;
  /// Text of the module; empty unless passed.
  std::string ptx;
  std::vector<compiled_entry> entries;
  /// The first lines of what the compiler or our checks said, without host paths: places look like
  /// "kernel.cu:12:5".
  std::string log;
  /// Not forbidden by itself, but worth a look: clock registers, writable module globals.
  std::vector<finding> findings;
};

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
