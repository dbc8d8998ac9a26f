#pragma once

#include "llm/transport/http_port.hpp"
#include "llm/transport/sse_parser.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What is different for one server.
struct server_rules {
  /// Any URL of it; scheme, host and port count.
  std::string url;
  /// Empty for that of the port.
  std::string ca_file;
  /// http:// to this server, which is another machine. Keys then travel in the clear.
  bool allow_plain_http = false;
};

struct curl_port_options {
  /// PEM file of the certificate authorities; empty for the system's.
  std::string ca_file;
  /// Of a server that speaks HTTP/2, where a connection carries many calls. Six full ones carry
  /// 600.
  uint32_t connections_per_host = 6;
  /// Of a server that does not, where a connection carries one.
  uint32_t connections_per_host_http1 = 256;
  /// Calls under way and waiting together. What comes beyond ends as `not_sent`.
  uint32_t calls_max = 2048;
  /// How long a call may wait until a connection takes it; it then ends as `not_sent`. No timer of
  /// the call runs meanwhile.
  std::chrono::nanoseconds waiting_max = std::chrono::minutes{10};
  /// http:// to any other machine than this one. Keys then travel in the clear.
  bool allow_plain_http = false;
  std::vector<server_rules> servers;
  sse_limits events;
  /// Of an answer that is an event stream, in bytes.
  size_t answer_max = size_t{64} << 20;
  /// Of any other answer.
  size_t body_max = size_t{1} << 20;
  /// What a transfer still gets after `finished`.
  std::chrono::nanoseconds finished_grace = std::chrono::milliseconds{250};
  /// Gets what libcurl tells about connections and headers, a line a call, without keys and never
  /// bodies; from the thread of the port. Empty: libcurl tells nothing.
  std::function<void(std::string_view)> debug;
};

/// The real transport: one thread that owns all connections. HTTP/2 where the server speaks it, no
/// redirects, no cookies, certificates always checked, https only (http to this machine, unless an
/// option allows more). Proxies are taken from the environment as usual, but never for this
/// machine. `sink` is called from that thread. The destructor ends each call that is still open as
/// `cancelled` and joins the thread.
///
/// Headers of an answer that are passed on: content-type, retry-after, retry-after-ms,
/// x-should-retry, x-request-id, request-id, x-ratelimit-*, anthropic-ratelimit-*.
///
/// Timers of a call: `connect` from its own attempt to connect, `first_event` and `wall` from the
/// moment its request goes out. `idle` starts with the first event (of an answer that is no event
/// stream: with its first byte), and every byte renews it, comments too; comments are no events.
std::unique_ptr<http_port> make_curl_port(curl_port_options options, http_sink sink);

} // namespace gristmill
