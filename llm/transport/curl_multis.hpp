#pragma once

#include <chrono>
#include <curl/curl.h>
#include <functional>
#include <optional>

namespace gristmill {

/// The two sets of connections of one thread. libcurl limits connections to a server for a whole
/// multi handle, and one limit cannot fit both protocols: over HTTP/2 a handful carries everything,
/// and without the limit each call beyond the first connection's streams would open its own
/// (measured: 401 instead of 6 for 500 calls); over HTTP/1.1 each call needs a connection.
///
/// `few` is driven by curl_multi_poll. `many` reports its sockets, which are kept in an epoll set,
/// and that one descriptor is polled along with the first.
class curl_multis {
public:
  enum class lane : uint8_t { few, many };

  curl_multis(long few_per_host, long many_per_host);
  ~curl_multis();
  curl_multis(const curl_multis&) = delete;
  curl_multis& operator=(const curl_multis&) = delete;

  void add(CURL* easy, lane where);
  void remove(CURL* easy, lane where);
  /// Reads and writes what is ready. The callbacks of the easy handles run in here.
  void perform();
  /// Each transfer that has ended since.
  void take_done(const std::function<void(CURL*, CURLcode)>& done);
  /// Returns when a socket is ready, a timer of libcurl is due, `timeout` has passed or somebody
  /// called `wake`.
  void wait(std::chrono::milliseconds timeout);
  /// From any thread.
  void wake();

private:
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  CURLM* few_;
  CURLM* many_;
  int epoll_ = -1;
  /// Of `many`, on the steady clock.
  std::optional<std::chrono::nanoseconds> timer_;
};

} // namespace gristmill
