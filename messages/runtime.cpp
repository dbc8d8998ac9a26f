#include "messages/runtime.hpp"

namespace gristmill {

std::string to_string(role which) {
  switch (which) { // no default: the compiler reports a missing case
  case role::planner:
    return "planner";
  case role::worker:
    return "worker";
  case role::gpu_lease:
    return "gpu-lease";
  case role::gpu:
    return "gpu";
  case role::compiler:
    return "compiler";
  case role::scorer:
    return "scorer";
  case role::oracle:
    return "oracle";
  case role::proposer:
    return "proposer";
  case role::child_front:
    return "child-front";
  case role::journal:
    return "journal";
  case role::llm_gateway:
    return "llm-gateway";
  case role::judge:
    return "judge";
  case role::cluster_hub:
    return "cluster-hub";
  }
  return "unknown";
}

} // namespace gristmill
