#pragma once

#include "gpu/toolchain/shared_library.hpp"
#include "messages/result.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// What a run of NVRTC made.
struct nvrtc_made {
  /// False: the source does not compile, and `log` says why.
  bool compiled = false;
  std::string ptx;
  /// Symbols of the name expressions, in their order.
  std::vector<std::string> symbols;
  std::string log;
};

/// NVIDIA's run-time compiler, versions 12 and 13, loaded from a file. Only `gristmill-nvrtc` loads
/// it: a compiler that crashes or hangs on a candidate must not take a process of ours with it.
class nvrtc_library {
public:
  /// A path, or a name such as "libnvrtc.so.13". Fails with `not_found`, or with `unsupported` for
  /// other versions.
  static result<nvrtc_library> open(const std::string& name);

  /// "nvrtc-13.0"
  const std::string& version() const { return version_; }
  /// The file, absolute, without links.
  const std::string& path() const { return path_; }

  /// Fails with `child_failed` when the compiler itself does.
  result<nvrtc_made> compile(const std::string& source, const std::string& file_name,
    const std::vector<std::string>& names, const std::vector<std::string>& options) const;

private:
  explicit nvrtc_library(shared_library library) : library_(std::move(library)) {}

  shared_library library_;
  std::string version_, path_;
};

/// NVIDIA's linker, which holds the assembler.
class jit_link_library {
public:
  static result<jit_link_library> open(const std::string& name);

  struct assembled {
    bool done = false;
    /// What the assembler said; with "-Xptxas=-v" also its resource lines.
    std::string log;
  };
  /// Assembles a module. Fails with `child_failed` when the linker itself does.
  result<assembled> assemble(const std::string& ptx, const std::vector<std::string>& options) const;

private:
  explicit jit_link_library(shared_library library) : library_(std::move(library)) {}

  shared_library library_;
};

} // namespace gristmill
