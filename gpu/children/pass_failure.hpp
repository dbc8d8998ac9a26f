#pragma once

#include "gpu/device.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"

#include <optional>
#include <string>

namespace gristmill {

/// How a pass ended when it did not end well.
struct pass_failure {
  /// runtime_error and timeout are the candidate's, infrastructure is ours.
  verdict_status status = verdict_status::infrastructure;
  std::string detail;
  /// Set when a kernel faulted.
  std::optional<device_fault> fault;
};

template <class T>
using pass_result = tl::expected<T, pass_failure>;

/// Passes the failure of another result on, as `pass` does for a `result`.
template <class T>
tl::unexpected<pass_failure> pass(const pass_result<T>& other) {
  return tl::unexpected<pass_failure>(other.error());
}

tl::unexpected<pass_failure> fail_pass(verdict_status status, std::string detail);
/// A failure of the device that is no fault of a kernel: what the candidate asked for in vain is
/// its own error, what the system refused is ours.
tl::unexpected<pass_failure> device_said(const failure& why);
tl::unexpected<pass_failure> fault_of(const device_fault& fault);

} // namespace gristmill
