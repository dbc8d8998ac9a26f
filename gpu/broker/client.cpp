#include "gpu/broker/client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

nanoseconds broker_now() {
  return std::chrono::duration_cast<nanoseconds>(
    std::chrono::steady_clock::now().time_since_epoch());
}

std::string default_broker_socket() {
  if (const char* told = std::getenv("GRISTMILL_LEASE_SOCKET"); told && *told)
    return told;
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder && *folder)
    return fmt::format("{}/gristmill-broker.sock", folder);
  return fmt::format("/tmp/gristmill-broker-{}.sock", getuid());
}

broker_client::broker_client(broker_client&& other) noexcept
  : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}

broker_client& broker_client::operator=(broker_client&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::exchange(other.socket_, -1);
    input_ = std::move(other.input_);
  }
  return *this;
}

broker_client::~broker_client() {
  close();
}

void broker_client::close() {
  if (socket_ >= 0)
    ::close(socket_);
  socket_ = -1;
  input_ = line_buffer{broker_line_bytes_max};
}

result<broker_client> broker_client::connect(const std::string& socket, const std::string& as) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path)
    return fail(errc::invalid_input,
      fmt::format(
        "{}: a path of a socket has at most {} bytes", socket, sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  broker_client out;
  out.socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (out.socket_ < 0)
    return fail(errc::io_failed, fmt::format("socket: {}", std::strerror(errno)));
  if (::connect(out.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(errno == ENOENT || errno == ECONNREFUSED ? errc::not_found : errc::io_failed,
      fmt::format("no broker at {}: {}; start one with `gristmill broker --gpus cuda:all`", socket,
        std::strerror(errno)));
  client_line hello;
  hello.as = as;
  if (auto sent = out.send(hello); !sent)
    return pass(sent);
  return out;
}

result<void> broker_client::send(const client_line& line) {
  const auto text = write_client_line(line) + "\n";
  // A line is far smaller than the buffer of the socket, and few are ever under way: a short write
  // means a broker that has stopped reading.
  if (socket_ >= 0
    && ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()))
    return {};
  close();
  return fail(errc::io_failed, "the broker has gone");
}

result<std::optional<broker_line>> broker_client::next(nanoseconds wait) {
  const auto end = broker_now() + wait;
  while (true) {
    if (auto line = input_.next()) {
      auto read = parse_broker_line(*line);
      if (!read) {
        close();
        return fail(errc::io_failed, "the broker speaks another language: " + read.error().what);
      }
      return std::optional<broker_line>(std::move(*read));
    }
    if (socket_ < 0 || input_.overflowed()) {
      close();
      return fail(errc::io_failed, "the broker has gone");
    }
    std::array<char, 16384> part{};
    auto got = recv(socket_, part.data(), part.size(), 0);
    if (got > 0) {
      input_.append({part.data(), static_cast<size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR)
      continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      close();
      return fail(errc::io_failed, "the broker has gone");
    }
    auto left = end - broker_now();
    if (left <= nanoseconds{0})
      return std::optional<broker_line>{};
    pollfd readable{socket_, POLLIN, 0};
    const auto ms =
      std::chrono::ceil<milliseconds>(std::min<nanoseconds>(left, milliseconds{1000}));
    poll(&readable, 1, static_cast<int>(ms.count()));
  }
}

result<broker_line> broker_client::ask(
  const client_line& line, broker_say answer, nanoseconds wait) {
  if (auto sent = send(line); !sent)
    return pass(sent);
  const auto end = broker_now() + wait;
  while (true) {
    auto got = next(std::max(end - broker_now(), nanoseconds{0}));
    if (!got)
      return pass(got);
    if (!*got)
      return fail(errc::timed_out, "the broker does not answer");
    if ((*got)->say == answer)
      return std::move(**got);
    if ((*got)->say == broker_say::error)
      return fail((*got)->code, (*got)->what);
  }
}

} // namespace gristmill
