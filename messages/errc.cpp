#include "messages/errc.hpp"

namespace gristmill {

std::string to_string(errc code) {
  switch (code) { // no default: the compiler reports a missing case
  case errc::invalid_input:
    return "invalid input";
  case errc::not_found:
    return "not found";
  case errc::io_failed:
    return "input/output failed";
  case errc::queue_full:
    return "queue full";
  case errc::lease_expired:
    return "lease expired";
  case errc::child_failed:
    return "child failed";
  case errc::timed_out:
    return "timed out";
  case errc::unsupported:
    return "unsupported";
  case errc::refused:
    return "refused";
  case errc::shutting_down:
    return "shutting down";
  case errc::device_fault:
    return "device fault";
  case errc::budget_exhausted:
    return "budget exhausted";
  case errc::provider_refused:
    return "provider refused";
  case errc::node_lost:
    return "node lost";
  }
  return "unknown error";
}

} // namespace gristmill
