#include "gpu/cuda/module_table.hpp"

#include "gpu/cuda/module_globals.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace gristmill::cuda {

namespace {

constexpr std::string_view elf_magic = "\x7f"
                                       "ELF";

} // namespace

result<gristmill::module_handle> module_table::load(std::string_view code) {
  loaded_module m;
  const std::string image(code);
  if (code.starts_with(elf_magic)) {
    m.assembled_by = "given as a cubin";
  } else {
    // As a whole program: nvJitLink would leave room for linking, which costs registers and more.
    m.globals = writable_globals(code);
    m.assembled_by = "the driver " + api_->version_text();
  }
  std::array<char, 4096> log{};
  std::array<int, 2> names{jit_error_buffer, jit_error_bytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  if (auto bad = (*api_)->module_load(
        &m.handle, image.c_str(), static_cast<unsigned>(names.size()), names.data(), values.data());
      bad != success) {
    log.back() = '\0';
    return fail(errc::invalid_input,
      fmt::format("the driver does not load the module: {}{}{}", api_->describe(bad),
        log[0] != '\0' ? ": " : "", log.data()));
  }
  const auto id = next_++;
  modules_.emplace(id, std::move(m));
  return gristmill::module_handle{id};
}

result<const module_table::loaded_module*> module_table::at(gristmill::module_handle module) const {
  auto found = modules_.find(module.id);
  if (found == modules_.end())
    return fail(errc::invalid_input, fmt::format("no module {} is loaded", module.id));
  return &found->second;
}

result<const loaded_function*> module_table::at(gristmill::function_handle function) const {
  auto in = at(gristmill::module_handle{function.module});
  if (!in)
    return pass(in);
  if (function.index >= (*in)->functions.size())
    return fail(errc::invalid_input,
      fmt::format("module {} has no function number {}", function.module, function.index));
  return &(*in)->functions[function.index];
}

result<void> module_table::unload(gristmill::module_handle module) {
  auto found = at(module);
  if (!found)
    return pass(found);
  const auto bad = (*api_)->module_unload((*found)->handle);
  modules_.erase(module.id);
  if (bad != success)
    return failure_of(*api_, "a module's end", bad);
  return {};
}

void module_table::unload_all() {
  for (const auto& [id, m] : modules_)
    (*api_)->module_unload(m.handle);
  modules_.clear();
}

result<function_properties> module_table::read_properties(
  function_handle function, std::string_view name) const {
  function_properties p;
  p.name = name;
  auto read = [&](int which, uint32_t& to) {
    int value = 0;
    auto bad = (*api_)->function_get(&value, which, function);
    to = static_cast<uint32_t>(std::max(value, 0));
    return bad;
  };
  for (auto [which, to] :
    {std::pair{function_max_threads, &p.max_threads}, {function_static_shared, &p.static_shared},
      {function_local_bytes, &p.local_bytes}, {function_registers, &p.registers}})
    if (auto bad = read(which, *to); bad != success)
      return failure_of(*api_, "properties of " + p.name, bad);
  for (size_t i = 0;; ++i) {
    size_t offset = 0, bytes = 0;
    // The driver tells the end of the list by an error.
    if ((*api_)->function_parameter(function, i, &offset, &bytes) != success)
      break;
    p.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
    p.parameter_bytes = static_cast<uint32_t>(offset + bytes);
  }
  return p;
}

result<gristmill::function_handle> module_table::find(
  gristmill::module_handle module, std::string_view name) {
  auto in = at(module);
  if (!in)
    return pass(in);
  loaded_function f;
  if (auto bad = (*api_)->module_function(&f.handle, (*in)->handle, std::string(name).c_str());
      bad != success)
    return fail(errc::not_found, fmt::format("`{}`: {}", name, api_->describe(bad)));
  auto properties = read_properties(f.handle, name);
  if (!properties)
    return pass(properties);
  f.properties = std::move(*properties);
  auto& all = modules_.at(module.id).functions;
  all.push_back(std::move(f));
  return gristmill::function_handle{module.id, static_cast<uint32_t>(all.size() - 1)};
}

result<const loaded_function*> module_table::ready(
  gristmill::function_handle function, const launch_shape& shape, int carveout) {
  if (auto found = at(function); !found)
    return found;
  auto& f = modules_.at(function.module).functions[function.index];
  const auto shared = static_cast<int>(shape.dynamic_shared);
  if (shared > f.dynamic_shared_max) {
    if (auto bad = (*api_)->function_set(f.handle, function_dynamic_shared_max, shared);
        bad != success)
      return fail(errc::refused,
        fmt::format("`{}` with {} bytes of dynamic shared memory: {}", f.properties.name, shared,
          api_->describe(bad)));
    f.dynamic_shared_max = shared;
  }
  if (carveout != f.carveout) {
    if (auto bad = (*api_)->function_set(f.handle, function_carveout, carveout); bad != success)
      return fail(errc::refused,
        fmt::format(
          "`{}` with a carveout of {} %: {}", f.properties.name, carveout, api_->describe(bad)));
    f.carveout = carveout;
  }
  const uint64_t cluster = uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2];
  if (cluster > 8 && !f.non_portable_cluster) {
    if (auto bad = (*api_)->function_set(f.handle, function_non_portable_cluster, 1);
        bad != success)
      return fail(errc::refused,
        fmt::format(
          "`{}` with clusters of {} blocks: {}", f.properties.name, cluster, api_->describe(bad)));
    f.non_portable_cluster = true;
  }
  return &f;
}

result<std::string> module_table::assembled_by(gristmill::module_handle module) const {
  auto in = at(module);
  if (!in)
    return pass(in);
  return (*in)->assembled_by;
}

template <class Visit>
result<void> module_table::each_global(const loaded_module& module, Visit visit) const {
  for (const auto& name : module.globals) {
    address where = 0;
    size_t bytes = 0;
    auto bad = (*api_)->module_global(&where, &bytes, module.handle, name.c_str());
    if (bad == error_not_found)
      continue; // The assembler has dropped it: no kernel uses it.
    if (bad != success)
      return failure_of(*api_, "module variable " + name, bad);
    if (auto done = visit(where, bytes); !done)
      return done;
  }
  return {};
}

result<std::vector<uint8_t>> module_table::globals(gristmill::module_handle module) const {
  auto in = at(module);
  if (!in)
    return pass(in);
  std::vector<uint8_t> out;
  auto done = each_global(**in, [&](address from, size_t bytes) -> result<void> {
    const auto at_byte = out.size();
    out.resize(at_byte + bytes);
    if (auto bad = (*api_)->copy_out(out.data() + at_byte, from, bytes); bad != success)
      return failure_of(*api_, "a module variable", bad);
    return {};
  });
  if (!done)
    return pass(done);
  return out;
}

result<void> module_table::restore_globals(
  gristmill::module_handle module, const std::vector<uint8_t>& bytes) const {
  auto in = at(module);
  if (!in)
    return pass(in);
  size_t used = 0;
  auto done = each_global(**in, [&](address to, size_t count) -> result<void> {
    if (count > bytes.size() - used)
      return fail(errc::invalid_input, "the bytes are not those of this module's variables");
    const auto bad = copy_in_and_wait(**api_, to, bytes.data() + used, count);
    used += count;
    if (bad != success)
      return failure_of(*api_, "a module variable", bad);
    return {};
  });
  if (done && used != bytes.size())
    return fail(errc::invalid_input, "the bytes are not those of this module's variables");
  return done;
}

} // namespace gristmill::cuda
