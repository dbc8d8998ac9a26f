#pragma once

#include "messages/embedded_file.hpp"
#include "messages/result.hpp"

#include <filesystem>
#include <span>

namespace gristmill {

/// The files of `gpu/toolchain/nvrtc_header`: what takes the place of the device header's files of
/// the same names where NVRTC compiles with the headers of a CUDA toolkit.
std::span<const embedded_file> nvrtc_header_files();

/// Writes what device code may include and a toolkit does not have: our own headers, and an empty
/// file for each name of the C and C++ libraries, because everything is there already. The folder
/// is made. Fails with `io_failed`.
result<void> write_nvrtc_header(const std::filesystem::path& folder);

} // namespace gristmill
