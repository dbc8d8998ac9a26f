#include "messages/measure.hpp"

namespace gristmill {

std::string to_string(measure_purpose purpose) {
  switch (purpose) { // no default: the compiler reports a missing case
  case measure_purpose::screen:
    return "screen";
  case measure_purpose::promotion:
    return "promotion";
  }
  return "unknown";
}

} // namespace gristmill
