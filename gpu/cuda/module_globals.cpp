#include "gpu/cuda/module_globals.hpp"

#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/syntax.hpp"

namespace gristmill::cuda {

std::vector<std::string> writable_globals(std::string_view ptx) {
  std::vector<std::string> names;
  try {
    for (const auto& v : ptx::read_module(ptx).variables)
      if (v.where == ptx::space::global && !v.is_extern && v.bytes > 0)
        names.emplace_back(v.name);
  } catch (const ptx::parse_error&) {
    names.clear();
  }
  return names;
}

} // namespace gristmill::cuda
