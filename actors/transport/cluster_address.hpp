#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gristmill {

/// Where a coordinator listens, or is to be found.
struct cluster_address {
  /// A name, an IPv4 address, or an IPv6 address without its brackets.
  std::string host;
  uint16_t port = 0;
};

/// Reads "HOST:PORT" or "[IPv6]:PORT". Port 0 (the system picks one) only where `any_port`. Errors:
/// `invalid_input`, naming the flag.
result<cluster_address> read_cluster_address(
  std::string_view flag, std::string_view text, bool any_port);

/// The same text again, with brackets where they are needed.
std::string to_string(const cluster_address& address);

/// Whether the host can only ever mean this machine: 127.0.0.0/8, ::1, "localhost".
bool is_loopback(const cluster_address& address);

} // namespace gristmill
