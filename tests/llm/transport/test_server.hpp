#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gristmill {

struct test_request {
  /// "POST /path HTTP/1.1" and the headers.
  std::string head;
  std::string body;
};

/// The server's side of one connection, in the hands of a script.
class test_connection {
public:
  test_connection(int socket, const std::atomic<bool>& stopping)
    : socket_(socket), stopping_(stopping) {}

  /// The next request; nothing when the client has gone.
  std::optional<test_request> read();
  /// False when the client has gone.
  bool write(std::string_view bytes);
  /// Status line, type and body, with its length.
  bool answer(std::string_view status, std::string_view more_headers, std::string_view body);
  /// The head of an event stream that ends with the connection.
  bool begin_stream(std::string_view more_headers = "");
  /// The head of one in chunks, which can be cut off, and a chunk of it.
  bool begin_chunked();
  bool chunk(std::string_view bytes);
  bool last_chunk() { return write("0\r\n\r\n"); }
  /// True when the client has closed its end or the server is to stop, false after `time`.
  bool gone_within(std::chrono::milliseconds time);

private:
  int socket_;
  const std::atomic<bool>& stopping_;
  std::string input_;
};

/// An HTTP/1.1 server on a port of this machine that does what a script says, right or wrong. One
/// thread a connection, which is closed when the script returns.
class test_server {
public:
  explicit test_server(std::function<void(test_connection&)> script);
  ~test_server();
  test_server(const test_server&) = delete;
  test_server& operator=(const test_server&) = delete;

  int port() const { return port_; }
  std::string url(std::string_view path = "/v1/chat") const;
  int connections() const { return connections_; }

private:
  void accept_all();

  std::function<void(test_connection&)> script_;
  int port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// A port of this machine that nobody listens on right now.
int free_port();

} // namespace gristmill
