#pragma once

#include "messages/result.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// Where a server of models listens.
struct endpoint {
  /// As given, without a final slash.
  std::string url;
  bool https = false;
  /// Without the brackets of an IPv6 address, in lower case.
  std::string host;
  /// 127.0.0.0/8, ::1 or localhost.
  bool loopback = false;
};

/// "http(s)://host[:port][/path]". `invalid_input` says what is wrong: another scheme, no host, a
/// user or password (keys come from the environment), a query or a fragment, a port outside 1 to
/// 65535, blanks.
result<endpoint> parse_endpoint(std::string_view text);

} // namespace gristmill
