#include "gpu/toolchain/nvrtc_header.hpp"

#include "gpu/toolchain/compile_steps.hpp"
#include "gpu/toolchain/device_header.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

namespace gristmill {

namespace {

/// A toolkit's own files are read for these, and for whole folders of them.
constexpr std::array<std::string_view, 8> of_the_toolkit{"cooperative_groups.h", "cuda_bf16.h",
  "cuda_fp16.h", "cuda_fp8.h", "cuda_runtime.h", "device_launch_parameters.h", "math_constants.h",
  "mma.h"};
constexpr std::array<std::string_view, 2> folders_of_the_toolkit{"cooperative_groups/", "cuda/"};

/// Files of the device header that any compiler can read.
constexpr std::array<std::string_view, 6> shared_files{"gristmill/integer_types.h",
  "gristmill/math_numbers.h", "gristmill/pipeline.h", "gristmill/signature.h",
  "gristmill/std_math.h", "gristmill/traits.h"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_of_the_toolkit(std::string_view name) {
  return contains(of_the_toolkit, name)
    || std::any_of(folders_of_the_toolkit.begin(), folders_of_the_toolkit.end(),
      [&](std::string_view folder) { return name.starts_with(folder); });
}

} // namespace

result<void> write_nvrtc_header(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder / "gristmill", error);
  if (error)
    return fail(errc::io_failed, folder.string() + ": " + error.message());
  for (const embedded_file& file : nvrtc_header_files())
    if (auto written = write_text_file(folder / file.path, file.content); !written)
      return written;
  for (const embedded_file& file : device_header_files()) {
    const bool shared = contains(shared_files, file.path);
    if (!shared && (!is_device_header(file.path) || is_of_the_toolkit(file.path)))
      continue;
    if (auto written =
          write_text_file(folder / file.path, shared ? file.content : "#pragma once\n");
        !written)
      return written;
  }
  return {};
}

} // namespace gristmill
