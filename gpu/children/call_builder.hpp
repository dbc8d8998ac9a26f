#pragma once

#include "gpu/children/pass_failure.hpp"
#include "gpu/cuda/measured_call.hpp"
#include "protocol/job.hpp"

#include <vector>

namespace gristmill {

/// The steps of a pass with the entries of a loaded module: what remains are the addresses, which a
/// real device changes from call to call. The pass must outlive it.
class call_builder {
public:
  /// Fails as the candidate's where an entry is not there, as ours where the job does not name it.
  static pass_result<call_builder> make(
    device& gpu, module_handle module, const run_pass& pass, const run_unit& unit);

  /// `addresses` in the order of the pass's buffers, 0 for an empty one. A plan that passes another
  /// number of bytes than the entry takes is the candidate's error.
  pass_result<std::vector<call_step>> steps(const std::vector<device_pointer>& addresses) const;

private:
  call_builder(device& gpu, const run_pass& pass) : gpu_(&gpu), pass_(&pass) {}

  device* gpu_;
  const run_pass* pass_;
  /// In the order of the steps; default for those that launch nothing.
  std::vector<function_handle> functions_;
  std::vector<function_properties> properties_;
};

} // namespace gristmill
