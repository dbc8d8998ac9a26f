#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// When a call is given up, each counted from the moment it is sent, `idle` from the last byte.
/// 0: never.
struct http_deadlines {
  std::chrono::nanoseconds connect = std::chrono::seconds{10};
  std::chrono::nanoseconds first_event = std::chrono::seconds{60};
  std::chrono::nanoseconds idle = std::chrono::seconds{300};
  std::chrono::nanoseconds wall = std::chrono::minutes{30};
};

using http_headers = std::vector<std::pair<std::string, std::string>>;

/// One POST whose answer is a stream of server-sent events.
struct http_call {
  /// Never used twice.
  uint64_t id = 0;
  std::string url;
  /// Without the key.
  http_headers headers;
  /// The header that carries the key, such as "Authorization", and what stands before the key in
  /// it, such as "Bearer ".
  std::string key_header;
  std::string key_prefix;
  /// Name of the environment variable that holds the key; empty for no key. Only the transport
  /// reads the value.
  std::string key_environment;
  std::string body;
  http_deadlines deadlines;
};

struct sse_event {
  /// What stood after "event:"; empty for none.
  std::string name;
  std::string data;

  friend bool operator==(const sse_event&, const sse_event&) = default;
};

enum class http_end : uint8_t {
  /// The answer came to its end, or its reader had seen enough (`http_port::finished`).
  complete = 0,
  cancelled,
  /// Nothing was sent: name, connection, TLS or the key's environment variable.
  not_sent,
  connect_timeout,
  first_event_timeout,
  idle_timeout,
  wall_timeout,
  /// Sent, and cut off before its end.
  cut_off,
  /// A line, an event or the answer is larger than allowed.
  too_large,
};

std::string to_string(http_end how);

/// What has come since the last report of the call. The last one has `ended`.
struct http_report {
  uint64_t id = 0;
  /// 0 until the headers are there.
  uint32_t status = 0;
  /// With the first report that has a status; names in lower case.
  http_headers headers;
  /// Of an answer that is an event stream.
  std::vector<sse_event> events;
  /// Of any other answer, whole, with the last report.
  std::string body;
  bool ended = false;
  http_end how = http_end::complete;
  /// For a person; never holds a key.
  std::string why;
};

/// Called by a thread of the port, for one call in order. Must not wait.
using http_sink = std::function<void(http_report)>;

/// Sends calls: the real transport, a recorder in front of it, or a cassette.
class http_port {
public:
  http_port() = default;
  http_port(const http_port&) = delete;
  http_port& operator=(const http_port&) = delete;
  virtual ~http_port() = default;

  /// Never blocks; each call gets exactly one report that has `ended`.
  virtual void start(http_call call) = 0;
  /// Unknown and ended ones are ignored.
  virtual void cancel(uint64_t id) = 0;
  /// The reader has seen the dialect's terminal event: the transfer gets 250 ms more and then ends
  /// as `complete`, whatever the server does.
  virtual void finished(uint64_t id) = 0;
};

} // namespace gristmill
