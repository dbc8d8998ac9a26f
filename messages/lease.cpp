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
  case gpu_phase::verifying:
    return "verifying";
  case gpu_phase::down:
    return "down";
  }
  return "unknown";
}

} // namespace gristmill
