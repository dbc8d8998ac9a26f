#pragma once

#include "bench/calibration/corpus_case.hpp"
#include "bench/calibration/corpus_problem.hpp"
#include "gpu/device.hpp"
#include "gpu/mock/clock.hpp"
#include "messages/measure.hpp"

#include <functional>
#include <memory>

namespace gristmill::calibration {

/// Compiles kernels of the corpus with clang-19 and runs them on the mock H200.
class mock_caller {
public:
  virtual ~mock_caller() = default;
  /// The output at the small size, as doubles, with inputs drawn as everywhere. What the plan, the
  /// compiler or the mock refuses, and what the kernel does wrong, is a failure with its words.
  virtual result<std::vector<double>> output(
    const corpus_kernel& kernel, const corpus_case& of) = 0;
  /// The modelled time at the large size. Inputs repeat 4 MiB of random numbers, except links.
  virtual result<call_time> time(const corpus_kernel& kernel, const corpus_case& of) = 0;
  /// What stands beside every time.
  virtual std::string label() const = 0;
};

/// Fails when this machine has no clang-19. `timed` is called for each launch that was timed.
result<std::unique_ptr<mock_caller>> make_mock_caller(
  std::function<void(const ptx::entry_info&, const sample&, const launch_time&)> timed = {});

/// The inputs of a case at its small size, in order, as raw bytes.
std::vector<std::vector<uint8_t>> small_inputs(const corpus_case& of);

} // namespace gristmill::calibration
