#include "gpu/children/pass_failure.hpp"

#include <utility>

namespace gristmill {

tl::unexpected<pass_failure> fail_pass(verdict_status status, std::string detail) {
  return tl::unexpected<pass_failure>(pass_failure{status, std::move(detail), {}});
}

tl::unexpected<pass_failure> device_said(const failure& why) {
  switch (why.code) {
  case errc::invalid_input:
  case errc::not_found:
  case errc::refused:
  case errc::unsupported:
  case errc::device_fault:
    return fail_pass(verdict_status::runtime_error, why.what);
  case errc::timed_out:
    return fail_pass(verdict_status::timeout, why.what);
  default:
    return fail_pass(verdict_status::infrastructure, why.what);
  }
}

tl::unexpected<pass_failure> fault_of(const device_fault& fault) {
  const auto status = fault.timeout ? verdict_status::timeout : verdict_status::runtime_error;
  return tl::unexpected<pass_failure>(pass_failure{status, fault.what, fault});
}

} // namespace gristmill
