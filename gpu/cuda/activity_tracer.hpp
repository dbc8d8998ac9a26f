#pragma once

#include "gpu/cuda/activity_ledger.hpp"
#include "gpu/cuda/cupti_table.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::cuda {

/// CUPTI's activity records of this process: kernels, copies and memsets, each linked to the window
/// in which the host asked for it. CUPTI's callbacks know no object, so there is one tracer a
/// process. Windows belong to the thread that opens them.
class activity_tracer {
public:
  /// Subscribes; to be called before the first context. Further calls give the same tracer, or the
  /// same failure. Fails as `cupti::load` does, and with `unsupported` and CUPTI's words where the
  /// system does not allow tracing.
  static result<activity_tracer*> start(const std::vector<std::string>& folders);

  activity_tracer(const activity_tracer&) = delete;
  activity_tracer& operator=(const activity_tracer&) = delete;

  /// What is asked for from here on belongs to that window, until `close` or an inner window.
  void open(uint64_t window);
  void close();

  struct collected {
    std::vector<traced_activity> seen;
    uint64_t dropped = 0;
  };
  /// Everything that has not been collected before; the device is idle. Asks CUPTI a few times
  /// while fewer than `expected` activities of `window` are there.
  collected collect(uint64_t window, size_t expected);

  /// How kernels are traced. CUPTI writes down when a kernel that may overlap others begins and
  /// ends by instructions that it adds to each block, which costs kernels with many short blocks up
  /// to a tenth. Kernels that run one after the other it can stamp from outside.
  enum class kernels : uint8_t { overlapping = 0, serial };

  /// Nothing is recorded until `resume`; a call then costs what it costs without tracing.
  void pause();
  /// Fails with CUPTI's words. `serial` keeps kernels from running at the same time.
  result<void> resume(kernels how);

private:
  explicit activity_tracer(cupti api) : api_(api) {}
  collected take();

  cupti api_;
  /// The kind of kernel records that is on; 0 when paused.
  uint32_t kernel_kind_ = 0;
};

} // namespace gristmill::cuda
