#include "messages/child.hpp"

namespace gristmill {

std::string to_string(child_profile profile) {
  switch (profile) {
  case child_profile::compiler:
    return "compiler";
  case child_profile::oracle:
    return "oracle";
  case child_profile::runner:
    return "runner";
  case child_profile::judge:
    return "judge";
  case child_profile::command:
    return "command";
  }
  return "unknown";
}

std::string to_string(child_end end) {
  switch (end) {
  case child_end::done:
    return "done";
  case child_end::no_done:
    return "ended without an answer";
  case child_end::deadline:
    return "deadline passed";
  case child_end::silent:
    return "went silent";
  case child_end::cancelled:
    return "cancelled";
  case child_end::could_not_start:
    return "could not start";
  case child_end::protocol_error:
    return "broke the protocol";
  }
  return "unknown";
}

} // namespace gristmill
