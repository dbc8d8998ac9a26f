#pragma once

#include "gpu/toolchain/compile_input.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// NVRTC, found on this machine.
struct nvrtc_command {
  /// What to start as `gristmill-nvrtc`; absolute.
  std::string program;
  /// The library: absolute, without links.
  std::string library;
  /// "nvrtc-13.0"; part of the cache key.
  std::string version;
  /// The toolkit's folder of device headers.
  std::string include;
  /// nvJitLink beside it; empty when there is none, and then nothing is assembled.
  std::string linker;
};

/// Names of the library to try, best first: in the folder of `GRISTMILL_CUDA` and nowhere else when
/// that is set, else in those of `CUDA_HOME` and /usr/local/cuda, then where the loader looks.
std::vector<std::string> nvrtc_names(const std::function<const char*(const char*)>& environment);

/// Asks `program` (gristmill-nvrtc) for the first of `names` that can be loaded, and looks for what
/// lies beside it. Fails with `not_found`, naming what is missing: the program, the library or its
/// headers.
result<nvrtc_command> find_nvrtc(const std::string& program, const std::vector<std::string>& names);

/// The command for a library that was found before. Fails with `not_found` when its headers are not
/// there.
result<nvrtc_command> nvrtc_at(
  const std::string& program, const std::string& library, const std::string& version);

/// Compiles with NVRTC and the toolkit's device headers, by the same rules as `compile_with_clang`:
/// entries are given as name expressions, the signature is asserted behind the source, and the PTX
/// is checked. What NVRTC cannot tell by itself is asked by compiling again: whether a further
/// entry of the PTX is a kernel of the source, and which module variables can be written. With a
/// linker the module is also assembled; what the assembler refuses does not pass, and its figures
/// become the log's "resources:" lines.
result<compile_output> compile_with_nvrtc(const compile_input& input,
  const std::filesystem::path& folder, const nvrtc_command& nvrtc,
  std::chrono::milliseconds limit = std::chrono::seconds(60));

/// As that of clang; whether there is a linker is part of it.
std::string cache_key(const compile_input& input, const nvrtc_command& nvrtc);

} // namespace gristmill
