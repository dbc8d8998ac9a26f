#include "gpu/cuda/measured_call.hpp"

namespace gristmill {

std::string to_string(flush_kind kind) {
  switch (kind) {
  case flush_kind::official:
    return "official";
  case flush_kind::clean:
    return "clean";
  }
  return "unknown";
}

} // namespace gristmill
