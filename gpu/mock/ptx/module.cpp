#include "gpu/mock/ptx/assembler.hpp"
#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/liveness.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gristmill::ptx {
namespace {

/// Addresses of the variables in device memory, in the order of the text.
void place_variables(const module_syntax& syntax, module_scope& scope, module& out) {
  uint64_t next = module_memory;
  uint64_t total = 0;
  for (const variable& v : syntax.variables) {
    scope.variables[v.name] = &v;
    if (v.where == space::shared)
      continue;
    const uint64_t align = std::max<uint64_t>(v.align, 256);
    next = (next + align - 1) / align * align;
    scope.addresses[v.name] = next;
    total += v.bytes;
    if (total > global_bytes_max)
      refuse(v.line,
        "the variables of the module have more than " + std::to_string(global_bytes_max)
          + " bytes");
    out.globals.push_back({std::string(v.name), next, v.bytes, v.where == space::constant, {}, {}});
    next += v.bytes;
  }
}

void fill_variables(const module_syntax& syntax, const module_scope& scope, module& out) {
  size_t index = 0;
  for (const variable& v : syntax.variables) {
    if (v.where == space::shared)
      continue;
    global_variable& g = out.globals[index++];
    if (v.values.empty())
      continue;
    g.initial.resize(v.bytes);
    for (size_t i = 0; i < v.values.size(); ++i)
      std::memcpy(g.initial.data() + i * v.width, &v.values[i], std::min<size_t>(v.width, 8));
    for (const variable::reference& r : v.references) {
      if (g.symbol.empty())
        g.symbol = r.symbol;
      uint64_t address = 0;
      const auto found = scope.addresses.find(r.symbol);
      if (found != scope.addresses.end())
        address = found->second + static_cast<uint64_t>(r.offset);
      else if (scope.functions.count(r.symbol) == 0)
        refuse(v.line, "'" + std::string(r.symbol) + "' is not declared");
      std::memcpy(g.initial.data() + r.element * v.width, &address, 8);
    }
  }
}

std::shared_ptr<const module> build(std::string_view text) {
  auto out = std::make_shared<module>();
  out->text = text;
  const module_syntax syntax = read_module(out->text);
  out->target = syntax.target;
  out->files = syntax.files;
  out->directives.assign(syntax.directives.begin(), syntax.directives.end());
  module_scope scope;
  scope.syntax = &syntax;
  place_variables(syntax, scope, *out);
  for (const function_syntax& f : syntax.functions)
    scope.functions[f.name] = &f;
  // Addresses that no memory has: code can call them, not read them.
  uint64_t entry_point = function_addresses;
  for (const function_syntax& f : syntax.functions)
    if (!f.is_entry && f.has_body)
      scope.addresses.emplace(f.name, entry_point += 16);
  fill_variables(syntax, scope, *out);
  for (const function_syntax& f : syntax.functions) {
    if (!f.is_entry || !f.has_body)
      continue;
    out->kernels.emplace_back();
    kernel& k = out->kernels.back();
    k.files = &out->files;
    assembler(scope, k).assemble(f);
    if (!place_registers(k))
      refuse(f.line, "entry '" + std::string(f.name) + "' has too many registers");
  }
  out->specials.assign(scope.specials.begin(), scope.specials.end());
  return out;
}

} // namespace

result<std::shared_ptr<const module>> parse(std::string_view text) {
  if (text.size() > text_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("PTX: the text has {} bytes; at most {} are read", text.size(), text_bytes_max));
  try {
    return build(text);
  } catch (const parse_error& e) {
    return fail(e.code, fmt::format("PTX line {}: {}", e.line, e.what));
  }
}

std::vector<entry_info> entries(const module& m) {
  std::vector<entry_info> result;
  for (const kernel& k : m.kernels)
    result.push_back(k.info);
  return result;
}

std::string target(const module& m) {
  return m.target;
}

std::vector<std::string> directives_used(const module& m) {
  return m.directives;
}

std::vector<std::string> special_registers_used(const module& m) {
  return m.specials;
}

std::vector<global_info> globals(const module& m) {
  std::vector<global_info> result;
  for (const global_variable& g : m.globals)
    result.push_back({g.name, g.bytes, g.is_const});
  return result;
}

result<std::string> initial_symbol(const module& m, std::string_view global) {
  for (const global_variable& g : m.globals)
    if (g.name == global) {
      if (g.symbol.empty())
        return fail(errc::not_found,
          fmt::format("PTX: variable '{}' is not initialised by a symbol", global));
      return g.symbol;
    }
  return fail(errc::not_found, fmt::format("PTX: there is no variable '{}'", global));
}

} // namespace gristmill::ptx
