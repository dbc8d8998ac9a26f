#pragma once

#include "messages/result.hpp"

#include <string>

namespace gristmill {

/// What a port needs to know of an address.
struct call_url {
  bool https = false;
  /// This machine, by name ("localhost") or number.
  bool loopback = false;
  /// "https://host:port": whom connections go to.
  std::string server;
};

/// `invalid_input` for what is no http or https URL, for one with a user's name or password in it
/// (it would end up in logs), and for http to another machine unless that is allowed. The text
/// holds no query.
result<call_url> read_call_url(const std::string& url, bool allow_plain_http);

} // namespace gristmill
