#pragma once

#include "messages/embedded_file.hpp"
#include "messages/result.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gristmill {

/// The files of `gpu/toolchain/device_header`: what clang needs to read device code where no CUDA
/// toolkit is installed, under the names that device code includes.
std::span<const embedded_file> device_header_files();

/// Whether device code may include that name, such as "cuda_fp16.h".
bool is_device_header(std::string_view name);

/// The names that device code may include, in one line.
std::string device_header_names();

/// Writes the files into a folder, which is made. Fails with `io_failed`.
result<void> write_device_header(const std::filesystem::path& folder);

} // namespace gristmill
