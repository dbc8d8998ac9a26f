#include "messages/lease.hpp"

namespace gristmill {

std::string to_string(lease_class what) {
  switch (what) {
  case lease_class::correctness:
    return "correctness";
  case lease_class::timing:
    return "timing";
  case lease_class::profile:
    return "profile";
  case lease_class::reference:
    return "reference";
  case lease_class::official:
    return "official";
  }
  return "unknown";
}

std::string to_string(gpu_phase phase) {
  switch (phase) {
  case gpu_phase::absent:
    return "absent";
  case gpu_phase::free:
    return "free";
  case gpu_phase::granted:
    return "granted";
  case gpu_phase::active:
    return "active";
  case gpu_phase::releasing:
    return "releasing";
  case gpu_phase::verifying:
    return "verifying";
  case gpu_phase::suspect:
    return "suspect";
  case gpu_phase::quarantined:
    return "quarantined";
  case gpu_phase::draining:
    return "draining";
  case gpu_phase::lost:
    return "lost";
  }
  return "unknown";
}

std::string to_string(lease_outcome outcome) {
  switch (outcome) {
  case lease_outcome::fine:
    return "fine";
  case lease_outcome::fault:
    return "fault";
  case lease_outcome::hang:
    return "hang";
  case lease_outcome::infrastructure:
    return "infrastructure";
  }
  return "unknown";
}

std::string to_string(probe_outcome outcome) {
  switch (outcome) {
  case probe_outcome::passed:
    return "passed";
  case probe_outcome::failed:
    return "failed";
  case probe_outcome::could_not:
    return "could not probe";
  }
  return "unknown";
}

} // namespace gristmill
