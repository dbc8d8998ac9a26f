#include "messages/sanitizer.hpp"

namespace gristmill {

std::string to_string(sanitizer_tool tool) {
  switch (tool) { // no default: the compiler reports a missing case
  case sanitizer_tool::memcheck:
    return "memcheck";
  case sanitizer_tool::racecheck:
    return "racecheck";
  case sanitizer_tool::synccheck:
    return "synccheck";
  case sanitizer_tool::initcheck:
    return "initcheck";
  }
  return "unknown";
}

std::string to_string(look_end end) {
  switch (end) { // no default: the compiler reports a missing case
  case look_end::clean:
    return "clean";
  case look_end::found:
    return "found";
  case look_end::did_not_look:
    return "did not look";
  }
  return "unknown";
}

const std::vector<sanitizer_tool>& sanitizer_tools() {
  static const std::vector<sanitizer_tool> all{sanitizer_tool::memcheck, sanitizer_tool::racecheck,
    sanitizer_tool::synccheck, sanitizer_tool::initcheck};
  return all;
}

} // namespace gristmill
