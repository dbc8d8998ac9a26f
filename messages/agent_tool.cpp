#include "messages/agent_tool.hpp"

namespace gristmill {

std::string to_string(agent_tool what) {
  switch (what) { // no default: the compiler reports a missing case
  case agent_tool::compile:
    return "compile";
  case agent_tool::emulate:
    return "emulate";
  case agent_tool::check:
    return "check";
  }
  return "unknown";
}

} // namespace gristmill
