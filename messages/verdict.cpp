#include "messages/verdict.hpp"

namespace gristmill {

std::string to_string(verdict_status status) {
  switch (status) { // no default: the compiler reports a missing case
  case verdict_status::passed:
    return "PASSED";
  case verdict_status::incorrect_numerical:
    return "INCORRECT_NUMERICAL";
  case verdict_status::incorrect_shape:
    return "INCORRECT_SHAPE";
  case verdict_status::incorrect_dtype:
    return "INCORRECT_DTYPE";
  case verdict_status::invalid_reference:
    return "INVALID_REFERENCE";
  case verdict_status::runtime_error:
    return "RUNTIME_ERROR";
  case verdict_status::reward_hack:
    return "REWARD_HACK";
  case verdict_status::compile_error:
    return "COMPILE_ERROR";
  case verdict_status::timeout:
    return "TIMEOUT";
  case verdict_status::not_checked:
    return "NOT_CHECKED";
  case verdict_status::infrastructure:
    return "INFRASTRUCTURE";
  }
  return "UNKNOWN";
}

std::string to_string(time_origin origin) {
  switch (origin) {
  case time_origin::none:
    return "none";
  case time_origin::modelled:
    return "MODELLED";
  case time_origin::measured:
    return "measured";
  case time_origin::not_a_measurement:
    return "NOT A MEASUREMENT";
  }
  return "unknown";
}

} // namespace gristmill
