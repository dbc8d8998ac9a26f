#include "messages/attempt.hpp"

namespace gristmill {

std::string to_string(const attempt_id& id) {
  return id.problem + "/" + id.language + "/" + std::to_string(id.ordinal);
}

std::string to_string(attempt_kind kind) {
  switch (kind) {
  case attempt_kind::baseline:
    return "baseline";
  case attempt_kind::search:
    return "search";
  case attempt_kind::planted:
    return "planted";
  }
  return "unknown";
}

std::string to_string(attempt_effort effort) {
  switch (effort) {
  case attempt_effort::full:
    return "full";
  case attempt_effort::probe:
    return "probe";
  }
  return "unknown";
}

std::string to_string(attempt_outcome outcome) {
  switch (outcome) {
  case attempt_outcome::judged:
    return "judged";
  case attempt_outcome::exhausted:
    return "exhausted";
  case attempt_outcome::no_candidate:
    return "no candidate";
  case attempt_outcome::infrastructure:
    return "infrastructure";
  case attempt_outcome::abandoned:
    return "abandoned";
  case attempt_outcome::unproposed:
    return "unproposed";
  }
  return "unknown";
}

} // namespace gristmill
