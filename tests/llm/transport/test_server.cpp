#include "tests/llm/transport/test_server.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;

namespace {

int listen_somewhere(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0
    || ::listen(socket, 1024) != 0
    || ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port for a test server");
  port = ntohs(address.sin_port);
  return socket;
}

size_t content_length(std::string_view head) {
  constexpr std::string_view name = "content-length:";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  auto at = std::search(head.begin(), head.end(), name.begin(), name.end(), same);
  if (at == head.end())
    return 0;
  at += static_cast<std::ptrdiff_t>(name.size());
  while (at != head.end() && *at == ' ')
    ++at;
  size_t value = 0;
  std::from_chars(std::to_address(at), head.data() + head.size(), value);
  return value;
}

} // namespace

int free_port() {
  int port = 0;
  ::close(listen_somewhere(port));
  return port;
}

std::optional<test_request> test_connection::read() {
  constexpr std::string_view blank_line = "\r\n\r\n";
  while (true) {
    if (const auto end = input_.find(blank_line); end != std::string::npos) {
      test_request out;
      out.head = input_.substr(0, end);
      const auto begin = end + blank_line.size();
      const auto length = content_length(out.head);
      if (input_.size() - begin >= length) {
        out.body = input_.substr(begin, length);
        input_.erase(0, begin + length);
        return out;
      }
    }
    char part[16384];
    const auto got = ::recv(socket_, part, sizeof part, 0);
    if (got <= 0)
      return std::nullopt;
    input_.append(part, static_cast<size_t>(got));
  }
}

bool test_connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool test_connection::answer(
  std::string_view status, std::string_view more_headers, std::string_view body) {
  return write(fmt::format(
    "HTTP/1.1 {}\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), more_headers, body));
}

bool test_connection::begin_stream(std::string_view more_headers) {
  return write(
    fmt::format("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n{}\r\n",
      more_headers));
}

bool test_connection::begin_chunked() {
  return write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
               "Transfer-Encoding: chunked\r\n\r\n");
}

bool test_connection::chunk(std::string_view bytes) {
  return write(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

bool test_connection::gone_within(milliseconds time) {
  for (milliseconds waited{0}; waited < time; waited += milliseconds{10}) {
    pollfd client{socket_, POLLRDHUP, 0};
    if (::poll(&client, 1, 10) > 0 || stopping_)
      return true;
  }
  return false;
}

test_server::test_server(std::function<void(test_connection&)> script)
  : script_(std::move(script)), listener_(listen_somewhere(port_)),
    acceptor_([this] { accept_all(); }) {}

test_server::~test_server() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard guard(mutex_);
    for (const int socket : sockets_)
      ::shutdown(socket, SHUT_RDWR);
  }
  for (auto& each : threads_)
    each.join();
  for (const int socket : sockets_)
    ::close(socket);
  ::close(listener_);
}

std::string test_server::url(std::string_view path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

void test_server::accept_all() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      return;
    const int one = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ++connections_;
    const std::lock_guard guard(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] {
      test_connection client(socket, stopping_);
      script_(client);
      // Closed for good with the server: another connection could get the number before.
      ::shutdown(socket, SHUT_RDWR);
    });
  }
}

} // namespace gristmill
