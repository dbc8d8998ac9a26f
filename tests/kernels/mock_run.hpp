#pragma once

#include "gpu/device.hpp"
#include "gpu/toolchain/clang_toolchain.hpp"
#include "kernels/template_point.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill::test {

using tensor = std::vector<float>;

/// Compiles generated kernels and runs them on the mock H200.
class mock_bench {
public:
  mock_bench();
  /// False, said aloud, when this machine has no clang-19.
  bool is_ready() const { return clang_.has_value(); }

  /// Outputs of one call at these workload axes, as floats, in declared order. The test fails with
  /// the compiler's or the device's words when something goes wrong.
  std::vector<tensor> outputs(const generated_kernel& kernel, const problem& target,
    const workload& work, const std::vector<tensor>& inputs);

  /// Modelled time of one call, in nanoseconds, with inputs that repeat one page of numbers.
  call_time time(const generated_kernel& kernel, const problem& target, const workload& work);

private:
  struct bound;
  bound prepare(const generated_kernel& kernel, const problem& target, const workload& work);
  void launch(const bound& call, const std::vector<device_pointer>& addresses);

  std::optional<clang_command> clang_;
  std::unique_ptr<device> gpu_;
};

/// Standard normal numbers for every tensor input, in order, as the run would draw them.
std::vector<tensor> drawn_inputs(const problem& target, const workload& work);

} // namespace gristmill::test
