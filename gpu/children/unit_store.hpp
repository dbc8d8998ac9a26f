#pragma once

#include "gpu/children/pass_failure.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "protocol/child_program.hpp"
#include "protocol/job.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// The device code of a job. A mock loads it afresh for each pass, as its times must not depend on
/// what ran before; a real device assembles it once and gets its variables back instead.
class unit_store {
public:
  /// Reads the files. Fails with `not_found`, `io_failed` and `invalid_input` as reading does.
  static result<unit_store> read(const child_context& context);

  const run_unit& unit(const std::string& key) const { return *units_.at(key).unit; }

  pass_result<module_handle> load(device& gpu, const std::string& key) const;
  /// Loaded at the first call. The variables that its kernels can write hold what they held then.
  pass_result<module_handle> keep(cuda_device& gpu, const std::string& key);

private:
  struct entry {
    const run_unit* unit = nullptr;
    std::string code;
    bool is_kept = false;
    module_handle module;
    std::vector<uint8_t> globals;
  };
  std::map<std::string, entry> units_;
};

} // namespace gristmill
