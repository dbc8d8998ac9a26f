#include "gpu/toolchain/device_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace gristmill {

bool is_device_header(std::string_view name) {
  const auto files = device_header_files();
  // What lies in the sub-folder of our name is reached through the other names only.
  return !name.starts_with("gristmill/")
    && std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.path == name; });
}

std::string device_header_names() {
  std::string all;
  for (const embedded_file& file : device_header_files())
    if (is_device_header(file.path))
      all += (all.empty() ? "" : ", ") + std::string(file.path);
  return all;
}

result<void> write_device_header(const std::filesystem::path& folder) {
  for (const embedded_file& file : device_header_files()) {
    const std::filesystem::path path = folder / file.path;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(file.content.data(), static_cast<std::streamsize>(file.content.size()));
    out.close();
    if (error || !out)
      return fail(errc::io_failed, fmt::format("writing {}", path.string()));
  }
  return {};
}

} // namespace gristmill
