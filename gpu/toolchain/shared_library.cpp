#include "gpu/toolchain/shared_library.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace gristmill {

result<shared_library> shared_library::open(const std::string& name) {
  shared_library opened;
  opened.name_ = name;
  opened.handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened.handle_ == nullptr) {
    const char* why = dlerror();
    return fail(errc::not_found, why == nullptr ? name + ": cannot be loaded" : why);
  }
  return opened;
}

result<void*> shared_library::symbol(const char* name) const {
  if (void* found = dlsym(handle_, name))
    return found;
  return fail(errc::unsupported, name_ + ": has no function " + name);
}

result<std::string> shared_library::file_of(const char* symbol_name) const {
  auto found = symbol(symbol_name);
  if (!found)
    return pass(found);
  Dl_info info{};
  std::error_code error;
  if (dladdr(*found, &info) == 0 || info.dli_fname == nullptr)
    return fail(errc::not_found, name_ + ": its file is not known");
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  if (error)
    return fail(errc::not_found, std::string(info.dli_fname) + ": " + error.message());
  return path.string();
}

} // namespace gristmill
