#include "messages/plant.hpp"

namespace gristmill {

std::string to_string(plant_kind kind) {
  switch (kind) { // no default: the compiler reports a missing case
  case plant_kind::over:
    return "over";
  case plant_kind::known:
    return "known";
  case plant_kind::refused:
    return "refused";
  }
  return "unknown";
}

} // namespace gristmill
