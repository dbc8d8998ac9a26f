#include "gpu/toolchain/device_compiler.hpp"

#include "protocol/nearest.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

result<device_compiler> found_clang(const std::function<const char*(const char*)>& environment) {
  const char* path = environment("PATH");
  auto clang = find_clang(path != nullptr ? path : "/usr/bin:/bin");
  if (!clang)
    return pass(clang);
  return device_compiler{clang->program, clang->version};
}

result<device_compiler> found_nvrtc(const std::filesystem::path& programs,
  const std::function<const char*(const char*)>& environment) {
  auto nvrtc = find_nvrtc((programs / nvrtc_program_name).string(), nvrtc_names(environment));
  if (!nvrtc)
    return pass(nvrtc);
  return device_compiler{nvrtc->library, nvrtc->version};
}

} // namespace

result<device_compiler> find_device_compiler(const std::string& toolchain,
  const std::filesystem::path& programs,
  const std::function<const char*(const char*)>& environment) {
  if (toolchain == "clang")
    return found_clang(environment);
  if (toolchain == "nvrtc")
    return found_nvrtc(programs, environment);
  if (toolchain != "auto")
    return fail(errc::invalid_input,
      fmt::format(
        "--toolchain {}: unknown{}", toolchain, suggestion(toolchain, {"auto", "nvrtc", "clang"})));
  auto nvrtc = found_nvrtc(programs, environment);
  if (nvrtc)
    return nvrtc;
  auto clang = found_clang(environment);
  if (clang)
    return clang;
  return fail(errc::not_found, clang.error().what + "; " + nvrtc.error().what);
}

result<compile_output> compile_device_code(const compile_input& input,
  const std::filesystem::path& folder, const device_compiler& compiler, const std::string& start,
  std::chrono::milliseconds limit) {
  if (!compiler.is_nvrtc())
    return compile_with_clang(input, folder, {start, compiler.version}, limit);
  auto nvrtc = nvrtc_at(start, compiler.path, compiler.version);
  if (!nvrtc)
    return pass(nvrtc);
  return compile_with_nvrtc(input, folder, *nvrtc, limit);
}

std::string cache_key(const compile_input& input, const device_compiler& compiler) {
  if (!compiler.is_nvrtc())
    return cache_key(input, clang_command{compiler.path, compiler.version});
  auto nvrtc = nvrtc_at({}, compiler.path, compiler.version);
  return cache_key(
    input, nvrtc ? *nvrtc : nvrtc_command{{}, compiler.path, compiler.version, {}, {}});
}

} // namespace gristmill
