#include "llm/transport/http_port.hpp"

namespace gristmill {

std::string to_string(http_end how) {
  switch (how) {
  case http_end::complete:
    return "complete";
  case http_end::cancelled:
    return "cancelled";
  case http_end::not_sent:
    return "not sent";
  case http_end::connect_timeout:
    return "connect timeout";
  case http_end::first_event_timeout:
    return "first event timeout";
  case http_end::idle_timeout:
    return "idle timeout";
  case http_end::wall_timeout:
    return "wall timeout";
  case http_end::cut_off:
    return "cut off";
  case http_end::too_large:
    return "too large";
  }
  return "unknown";
}

} // namespace gristmill
