#pragma once

#include "gpu/cuda/cuda_device.hpp"
#include "gpu/cuda/driver_table.hpp"

#include <map>
#include <string>
#include <vector>

namespace gristmill::cuda {

struct loaded_function {
  function_handle handle = nullptr;
  function_properties properties;
  /// As set last, so that a launch sets only what changes.
  int dynamic_shared_max = 0;
  int carveout = -1;
  bool non_portable_cluster = false;
};

/// The modules on a device and their functions; errors as `device` promises.
class module_table {
public:
  explicit module_table(driver_ptr api) : api_(std::move(api)) {}
  module_table(const module_table&) = delete;
  module_table& operator=(const module_table&) = delete;
  ~module_table() { unload_all(); }

  result<gristmill::module_handle> load(std::string_view code);
  result<void> unload(gristmill::module_handle module);
  void unload_all();
  result<gristmill::function_handle> find(gristmill::module_handle module, std::string_view name);
  result<const loaded_function*> at(gristmill::function_handle function) const;
  /// With these limits of the function raised as far as a launch needs; `refused` otherwise.
  result<const loaded_function*> ready(
    gristmill::function_handle function, const launch_shape& shape, int carveout);
  result<std::string> assembled_by(gristmill::module_handle module) const;
  /// All variables that kernels can write, one behind the other. The device is idle.
  result<std::vector<uint8_t>> globals(gristmill::module_handle module) const;
  result<void> restore_globals(
    gristmill::module_handle module, const std::vector<uint8_t>& bytes) const;

private:
  struct loaded_module {
    module_handle handle = nullptr;
    std::vector<std::string> globals;
    std::vector<loaded_function> functions;
    std::string assembled_by;
  };

  result<const loaded_module*> at(gristmill::module_handle module) const;
  result<function_properties> read_properties(
    function_handle function, std::string_view name) const;
  template <class Visit>
  result<void> each_global(const loaded_module& module, Visit visit) const;

  driver_ptr api_;
  std::map<uint32_t, loaded_module> modules_;
  uint32_t next_ = 1;
};

} // namespace gristmill::cuda
