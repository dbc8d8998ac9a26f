#include "gpu/cuda/cuda_facts.hpp"

#include "gpu/cuda/cupti_table.hpp"
#include "gpu/cuda/device_properties.hpp"
#include "gpu/cuda/driver_table.hpp"
#include "gpu/cuda/library_search.hpp"
#include "gpu/cuda/nvml_table.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// By the library's own function.
result<std::string> version_by(const char* function, const std::vector<std::string>& names,
  const std::vector<std::string>& folders) {
  auto library = cuda::find_library(names, folders);
  if (!library)
    return pass(library);
  auto ask = library->function<int(int*, int*)>(function);
  if (!ask)
    return pass(ask);
  int major = 0, minor = 0;
  if ((*ask)(&major, &minor) != 0)
    return fail(errc::unsupported, fmt::format("{} fails", function));
  return fmt::format("{}.{}", major, minor);
}

library_found told(std::string name, const result<std::string>& version) {
  return {std::move(name), version.has_value(), version ? *version : version.error().what};
}

std::vector<library_found> find_libraries(const std::vector<std::string>& library_folders) {
  std::vector<library_found> out;
  out.push_back(told(
    "nvrtc", version_by("nvrtcVersion", {"libnvrtc.so.13", "libnvrtc.so.12"}, library_folders)));
  out.push_back(told("nvjitlink",
    version_by("nvJitLinkVersion", {"libnvJitLink.so.13", "libnvJitLink.so.12"}, library_folders)));
  out.push_back(told("cupti", cuda::cupti::load(library_folders).map([](const auto& one) {
    return fmt::format("{}", one.version());
  })));
  out.push_back(told("nvml", cuda::nvml::load(library_folders).map([](const auto& one) {
    std::array<char, 96> text{};
    const bool told_it = one->driver_version != nullptr
      && one->driver_version(text.data(), static_cast<unsigned>(text.size() - 1)) == 0;
    return told_it ? std::string(text.data()) : std::string("without a version");
  })));
  return out;
}

} // namespace

result<cuda_facts> read_cuda_facts(int ordinal, const std::vector<std::string>& library_folders) {
  auto api = cuda::driver::load();
  if (!api)
    return pass(api);
  auto found = cuda::find_device(**api, ordinal);
  if (!found)
    return pass(found);
  int pageable = 0;
  if (auto bad = (**api)->device_attribute(&pageable, cuda::pageable_memory_access, found->id);
      bad != cuda::success)
    return fail(errc::io_failed, fmt::format("cuda:{}: {}", ordinal, (*api)->describe(bad)));
  cuda_facts out;
  out.driver_api = (*api)->version();
  out.pageable_memory_access = pageable != 0;
  out.libraries = find_libraries(library_folders);
  return out;
}

} // namespace gristmill
