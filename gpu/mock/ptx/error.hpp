#pragma once

#include "messages/errc.hpp"

#include <string>
#include <utility>

namespace gristmill::ptx {

/// Thrown while a text is read; `parse` turns it into a `failure`, nothing else sees it.
struct parse_error {
  errc code = errc::invalid_input;
  int line = 0;
  std::string what;
};

[[noreturn]] inline void refuse(int line, std::string what) {
  throw parse_error{errc::invalid_input, line, std::move(what)};
}

[[noreturn]] inline void not_supported(int line, std::string what) {
  throw parse_error{errc::unsupported, line, std::move(what)};
}

} // namespace gristmill::ptx
