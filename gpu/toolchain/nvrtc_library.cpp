#include "gpu/toolchain/nvrtc_library.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace gristmill {

namespace {

// The few declarations that we need of nvrtc.h and nvJitLink.h, so that no toolkit is needed to
// build. Both are C interfaces whose results are 0 for success.
struct nvrtc_program;
// What the source brings about: too much for the memory, an error, a mistake inside of the
// compiler.
constexpr int nvrtc_out_of_memory = 1, nvrtc_compilation_failed = 6, nvrtc_internal_error = 11;
using nvrtc_version = int(int* major, int* minor);
using nvrtc_create = int(nvrtc_program** program, const char* source, const char* name, int headers,
  const char* const* header_texts, const char* const* header_names);
using nvrtc_destroy = int(nvrtc_program** program);
using nvrtc_add_name = int(nvrtc_program* program, const char* name);
using nvrtc_compile = int(nvrtc_program* program, int count, const char* const* options);
using nvrtc_size = int(nvrtc_program* program, size_t* bytes);
using nvrtc_text = int(nvrtc_program* program, char* text);
using nvrtc_lowered = int(nvrtc_program* program, const char* name, const char** symbol);

struct jit_link;
constexpr int jit_link_input_ptx = 2;
using jit_link_create = int(jit_link** linker, uint32_t count, const char** options);
using jit_link_destroy = int(jit_link** linker);
using jit_link_add = int(
  jit_link* linker, int kind, const void* data, size_t bytes, const char* name);
using jit_link_complete = int(jit_link* linker);
using jit_link_size = int(jit_link* linker, size_t* bytes);
using jit_link_text = int(jit_link* linker, char* text);

constexpr size_t text_bytes_max = size_t{64} << 20;

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  for (const std::string& text : texts)
    all.push_back(text.c_str());
  return all;
}

/// A text that is asked for by its size and then by a pointer. The size counts the zero at the end.
template <class Handle>
result<std::string> text_of(
  const shared_library& library, const char* size_name, const char* text_name, Handle* handle) {
  auto size = library.function<int(Handle*, size_t*)>(size_name);
  auto text = library.function<int(Handle*, char*)>(text_name);
  if (!size)
    return pass(size);
  if (!text)
    return pass(text);
  size_t bytes = 0;
  if ((*size)(handle, &bytes) != 0 || bytes > text_bytes_max)
    return fail(errc::child_failed, fmt::format("{} failed", size_name));
  std::string out(bytes + 1, '\0');
  if (bytes > 0 && (*text)(handle, out.data()) != 0)
    return fail(errc::child_failed, fmt::format("{} failed", text_name));
  out.resize(out.find('\0'));
  return out;
}

/// A handle that goes with the scope.
template <class Handle>
struct owned {
  Handle* handle = nullptr;
  int (*destroy)(Handle**) = nullptr;

  owned() = default;
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  ~owned() {
    if (handle != nullptr && destroy != nullptr)
      destroy(&handle);
  }
};

} // namespace

result<nvrtc_library> nvrtc_library::open(const std::string& name) {
  auto library = shared_library::open(name);
  if (!library)
    return pass(library);
  auto ask = library->function<nvrtc_version>("nvrtcVersion");
  if (!ask)
    return pass(ask);
  auto path = library->file_of("nvrtcVersion");
  if (!path)
    return pass(path);
  int major = 0, minor = 0;
  if ((*ask)(&major, &minor) != 0)
    return fail(errc::child_failed, name + ": nvrtcVersion failed");
  if (major != 12 && major != 13)
    return fail(errc::unsupported,
      fmt::format("{}: NVRTC {}.{}; versions 12 and 13 are supported", *path, major, minor));
  nvrtc_library opened(std::move(*library));
  opened.version_ = fmt::format("nvrtc-{}.{}", major, minor);
  opened.path_ = *path;
  return opened;
}

result<nvrtc_made> nvrtc_library::compile(const std::string& source, const std::string& file_name,
  const std::vector<std::string>& names, const std::vector<std::string>& options) const {
  auto create = library_.function<nvrtc_create>("nvrtcCreateProgram");
  auto destroy = library_.function<nvrtc_destroy>("nvrtcDestroyProgram");
  auto add_name = library_.function<nvrtc_add_name>("nvrtcAddNameExpression");
  auto compile_program = library_.function<nvrtc_compile>("nvrtcCompileProgram");
  auto lowered = library_.function<nvrtc_lowered>("nvrtcGetLoweredName");
  if (!create)
    return pass(create);
  if (!destroy)
    return pass(destroy);
  if (!add_name)
    return pass(add_name);
  if (!compile_program)
    return pass(compile_program);
  if (!lowered)
    return pass(lowered);
  owned<nvrtc_program> program;
  program.destroy = *destroy;
  if ((*create)(&program.handle, source.c_str(), file_name.c_str(), 0, nullptr, nullptr) != 0)
    return fail(errc::child_failed, "nvrtcCreateProgram failed");
  for (const std::string& name : names)
    if ((*add_name)(program.handle, name.c_str()) != 0)
      return fail(errc::child_failed, "nvrtcAddNameExpression failed for " + name);
  const auto words = pointers(options);
  const int status =
    (*compile_program)(program.handle, static_cast<int>(words.size()), words.data());
  auto log = text_of(library_, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program.handle);
  if (!log)
    return pass(log);
  nvrtc_made made;
  made.log = std::move(*log);
  if (status == nvrtc_out_of_memory)
    made.log += "error: the compiler ran out of memory\n";
  if (status == nvrtc_internal_error)
    made.log += "error: the compiler failed on this source by a mistake of its own\n";
  if (status == nvrtc_compilation_failed || status == nvrtc_out_of_memory
    || status == nvrtc_internal_error)
    return made;
  if (status != 0)
    return fail(
      errc::child_failed, fmt::format("nvrtcCompileProgram ended with {}: {}", status, made.log));
  for (const std::string& name : names) {
    const char* symbol = nullptr;
    if ((*lowered)(program.handle, name.c_str(), &symbol) != 0 || symbol == nullptr)
      return fail(errc::child_failed, "nvrtcGetLoweredName failed for " + name);
    made.symbols.emplace_back(symbol);
  }
  auto ptx = text_of(library_, "nvrtcGetPTXSize", "nvrtcGetPTX", program.handle);
  if (!ptx)
    return pass(ptx);
  made.ptx = std::move(*ptx);
  made.compiled = true;
  return made;
}

result<jit_link_library> jit_link_library::open(const std::string& name) {
  auto library = shared_library::open(name);
  if (!library)
    return pass(library);
  return jit_link_library(std::move(*library));
}

result<jit_link_library::assembled> jit_link_library::assemble(
  const std::string& ptx, const std::vector<std::string>& options) const {
  auto create = library_.function<jit_link_create>("nvJitLinkCreate");
  auto destroy = library_.function<jit_link_destroy>("nvJitLinkDestroy");
  auto add = library_.function<jit_link_add>("nvJitLinkAddData");
  auto complete = library_.function<jit_link_complete>("nvJitLinkComplete");
  if (!create)
    return pass(create);
  if (!destroy)
    return pass(destroy);
  if (!add)
    return pass(add);
  if (!complete)
    return pass(complete);
  owned<jit_link> linker;
  linker.destroy = *destroy;
  auto words = pointers(options);
  if (const int status =
        (*create)(&linker.handle, static_cast<uint32_t>(words.size()), words.data());
      status != 0)
    return fail(errc::child_failed, fmt::format("nvJitLinkCreate ended with {}", status));
  assembled out;
  out.done =
    (*add)(linker.handle, jit_link_input_ptx, ptx.c_str(), ptx.size() + 1, "kernel.ptx") == 0
    && (*complete)(linker.handle) == 0;
  for (const auto& [size, text] : {std::pair{"nvJitLinkGetErrorLogSize", "nvJitLinkGetErrorLog"},
         {"nvJitLinkGetInfoLogSize", "nvJitLinkGetInfoLog"}}) {
    auto log = text_of(library_, size, text, linker.handle);
    if (!log)
      return pass(log);
    out.log += *log + (log->empty() || log->ends_with('\n') ? "" : "\n");
  }
  return out;
}

} // namespace gristmill
