#include "messages/cluster.hpp"

namespace gristmill {

std::string to_string(node_task_kind what) {
  switch (what) { // no default: the compiler reports a missing case
  case node_task_kind::compile:
    return "compile";
  case node_task_kind::prepare:
    return "prepare";
  case node_task_kind::end_draw:
    return "end_draw";
  case node_task_kind::measure:
    return "measure";
  case node_task_kind::judge:
    return "judge";
  case node_task_kind::quiet:
    return "quiet";
  case node_task_kind::probe:
    return "probe";
  }
  return "unknown";
}

} // namespace gristmill
