#include "tests/gpu/cuda/assembler.hpp"

#include "gpu/cuda/function_loader.hpp"
#include "gpu/cuda/library_search.hpp"

#include <array>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr int input_ptx = 2; // NVJITLINK_INPUT_PTX
constexpr size_t text_bytes_max = size_t{16} << 20, cubin_bytes_max = size_t{256} << 20;

} // namespace

result<assembler> assembler::load(const std::vector<std::string>& folders) {
  auto library = find_library({"libnvJitLink.so.13", "libnvJitLink.so.12"}, folders);
  if (!library)
    return fail(errc::not_found, "no nvJitLink: " + library.error().what);
  assembler out;
  auto& f = out.call_;
  function_loader from(*library);
  from.take(f.version, "nvJitLinkVersion")
    .take(f.create, "nvJitLinkCreate")
    .take(f.destroy, "nvJitLinkDestroy")
    .take(f.add, "nvJitLinkAddData")
    .take(f.complete, "nvJitLinkComplete")
    .take(f.cubin_bytes, "nvJitLinkGetLinkedCubinSize")
    .take(f.cubin, "nvJitLinkGetLinkedCubin")
    .take(f.error_bytes, "nvJitLinkGetErrorLogSize")
    .take(f.error, "nvJitLinkGetErrorLog")
    .take(f.info_bytes, "nvJitLinkGetInfoLogSize")
    .take(f.info, "nvJitLinkGetInfoLog");
  if (from.missing())
    return fail(errc::unsupported, "nvJitLink lacks a function: " + from.missing()->what);
  unsigned major = 0, minor = 0;
  if (f.version(&major, &minor) != 0)
    return fail(errc::unsupported, "nvJitLink does not tell its version");
  out.title_ = fmt::format("nvJitLink {}.{}", major, minor);
  return out;
}

result<assembled_code> assembler::assemble(std::string_view ptx, const std::string& arch) const {
  const std::string target = "-arch=" + arch;
  std::array<const char*, 2> options{target.c_str(), "-Xptxas=-v"};
  struct owned {
    const functions& call;
    linker* handle = nullptr;
    explicit owned(const functions& f) : call(f) {}
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() {
      if (handle != nullptr)
        call.destroy(&handle);
    }
  } made(call_);
  if (auto bad = call_.create(&made.handle, options.size(), options.data()); bad != 0)
    return fail(errc::unsupported, fmt::format("{} does not start for {}: {}", title_, arch, bad));
  auto text = [&](auto size, auto read) {
    size_t bytes = 0;
    std::string out;
    if (size(made.handle, &bytes) != 0 || bytes == 0 || bytes > text_bytes_max)
      return out;
    out.resize(bytes);
    if (read(made.handle, out.data()) != 0)
      out.clear();
    return out.substr(0, out.find('\0'));
  };
  // PTX has to end with a zero, and it counts.
  const std::string source(ptx);
  auto bad = call_.add(made.handle, input_ptx, source.c_str(), source.size() + 1, "kernel.ptx");
  if (bad == 0)
    bad = call_.complete(made.handle);
  assembled_code out;
  out.log = text(call_.info_bytes, call_.info);
  if (bad != 0)
    return fail(errc::invalid_input,
      fmt::format("the assembler refuses the code ({}): {}{}", bad,
        text(call_.error_bytes, call_.error), out.log));
  size_t bytes = 0;
  if (call_.cubin_bytes(made.handle, &bytes) != 0 || bytes == 0 || bytes > cubin_bytes_max)
    return fail(errc::io_failed, title_ + " gives no code");
  out.cubin.resize(bytes);
  if (call_.cubin(made.handle, out.cubin.data()) != 0)
    return fail(errc::io_failed, title_ + " gives no code");
  return out;
}

} // namespace gristmill::cuda
