#include "gpu/cuda/library_search.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <system_error>

namespace gristmill::cuda {

namespace {

namespace fs = std::filesystem;

/// Sub-folders whose name begins so, the newest version first.
std::vector<fs::path> beginning_with(const fs::path& folder, const std::string& start) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(start) && fs::is_directory(it->path(), error))
      out.push_back(it->path());
  std::sort(out.rbegin(), out.rend());
  return out;
}

/// Where toolkits and PyTorch's packages put libraries; only folders that exist.
std::vector<std::string> usual_folders() {
  std::vector<fs::path> candidates;
  for (const auto& toolkit : beginning_with("/usr/local", "cuda"))
    for (const char* inside : {"extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "lib"})
      candidates.push_back(toolkit / inside);
  for (const char* root : {"/usr/local/lib", "/usr/lib", "/opt/conda/lib", "/opt/venv/lib"})
    for (const auto& python : beginning_with(root, "python3"))
      for (const char* packages : {"dist-packages", "site-packages"})
        for (const auto& part : beginning_with(python / packages / "nvidia", ""))
          candidates.push_back(part / "lib");
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& one : candidates)
    if (fs::is_directory(one, error))
      out.push_back(one.string());
  return out;
}

} // namespace

result<shared_library> find_library(
  const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  std::error_code error;
  auto add = [&](const std::vector<std::string>& where) {
    for (const auto& folder : where)
      for (const auto& name : names)
        if (auto file = fs::path(folder) / name; fs::exists(file, error))
          files.push_back(file.string());
  };
  add(folders);
  files.insert(files.end(), names.begin(), names.end());
  add(usual_folders());
  std::string last;
  for (const auto& file : files) {
    auto opened = shared_library::open(file);
    if (opened)
      return opened;
    last = opened.error().what;
  }
  return fail(errc::not_found, fmt::format("none of {} loads: {}", fmt::join(names, ", "), last));
}

} // namespace gristmill::cuda
