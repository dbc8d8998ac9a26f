#pragma once

#include "gpu/toolchain/shared_library.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::cuda {

/// Device code as the driver loads it, and how it came to be.
struct assembled_code {
  std::string cubin;
  /// What the assembler said, with the lines of `-Xptxas=-v` on registers, shared memory, spills.
  std::string log;
};

/// nvJitLink, which assembles PTX for exactly one architecture where there is no driver to do it;
/// versions 12 and 13, loaded at run time. As one of several units that may be linked, so what it
/// makes is not what a device runs (docs/decisions/0040-whole-programs.md).
class assembler {
public:
  /// `not_found` without the library, `unsupported` where a function lacks.
  static result<assembler> load(const std::vector<std::string>& folders);

  /// `arch` is "sm_90a". `invalid_input` with the assembler's words for code that it refuses.
  result<assembled_code> assemble(std::string_view ptx, const std::string& arch) const;
  /// "nvJitLink 13.0"
  const std::string& title() const { return title_; }

private:
  struct linker;
  struct functions {
    int (*version)(unsigned* major, unsigned* minor);
    int (*create)(linker** made, uint32_t count, const char** options);
    int (*destroy)(linker** made);
    int (*add)(linker* made, int kind, const void* data, size_t bytes, const char* name);
    int (*complete)(linker* made);
    int (*cubin_bytes)(linker* made, size_t* bytes);
    int (*cubin)(linker* made, void* to);
    int (*error_bytes)(linker* made, size_t* bytes);
    int (*error)(linker* made, char* to);
    int (*info_bytes)(linker* made, size_t* bytes);
    int (*info)(linker* made, char* to);
  };

  functions call_{};
  std::string title_;
};

} // namespace gristmill::cuda
