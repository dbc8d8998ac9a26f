#pragma once

#include "gpu/toolchain/device_compiler.hpp"
#include "gpu/toolchain/device_header.hpp"
#include "tests/gpu/toolchain/compile_fixture.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace gristmill::test {

/// The program that runs NVRTC, in the build folder that ctest names.
inline std::string nvrtc_program() {
  const char* folder = std::getenv("GRISTMILL_BIN");
  return std::string(folder == nullptr ? "" : folder) + "/" + nvrtc_program_name;
}

/// NVRTC of this machine, or nothing, said aloud.
inline std::optional<nvrtc_command> nvrtc_or_skip() {
  auto found =
    find_nvrtc(nvrtc_program(), nvrtc_names([](const char* name) { return std::getenv(name); }));
  if (found)
    return *found;
  MESSAGE("SKIPPED: " << found.error().what);
  return std::nullopt;
}

inline compile_output compile_or_fail(const compile_input& input, const nvrtc_command& nvrtc) {
  const scratch_folder folder;
  auto out = compile_with_nvrtc(input, folder.path(), nvrtc);
  REQUIRE_MESSAGE(out, (out ? std::string() : out.error().what));
  return std::move(*out);
}

} // namespace gristmill::test
