#include "gpu/children/unit_store.hpp"

#include "gpu/children/job_directory.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr uint64_t code_bytes_max = uint64_t{16} << 20;

} // namespace

result<unit_store> unit_store::read(const child_context& context) {
  unit_store out;
  for (const auto& unit : context.what.run.units) {
    auto code = read_whole_file(context.path(unit.file), code_bytes_max);
    if (!code)
      return pass(code);
    entry one;
    one.unit = &unit;
    one.code = std::move(*code);
    out.units_.emplace(unit.key, std::move(one));
  }
  return out;
}

pass_result<module_handle> unit_store::load(device& gpu, const std::string& key) const {
  auto loaded = gpu.load_module(units_.at(key).code);
  if (!loaded)
    return device_said(loaded.error());
  return *loaded;
}

pass_result<module_handle> unit_store::keep(cuda_device& gpu, const std::string& key) {
  auto& one = units_.at(key);
  if (one.is_kept) {
    if (auto done = gpu.restore_globals(one.module, one.globals); !done)
      return device_said(done.error());
    return one.module;
  }
  auto loaded = load(gpu, key);
  if (!loaded)
    return loaded;
  auto globals = gpu.globals(*loaded);
  if (!globals)
    return device_said(globals.error());
  one.module = *loaded;
  one.globals = std::move(*globals);
  one.is_kept = true;
  if (auto who = gpu.assembled_by(*loaded); who)
    fmt::print("unit {}: assembled by {}\n", key, *who);
  return *loaded;
}

} // namespace gristmill
