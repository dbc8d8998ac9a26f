#include "actors/transport/listening_socket.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

result<listening_socket> listening_socket::at(const cluster_address& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int looked =
    getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (looked != 0)
    return fail(errc::invalid_input,
      "--listen " + to_string(where) + ": " + gai_strerror(looked)
        + "; give an address of this machine, such as 127.0.0.1");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> hold{found, &freeaddrinfo};
  listening_socket out{
    ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol)};
  if (out.descriptor_ < 0)
    return fail(errc::io_failed, std::string("socket: ") + std::strerror(errno));
  const int on = 1;
  setsockopt(out.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (found->ai_family == AF_INET6)
    setsockopt(out.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(out.descriptor_, found->ai_addr, found->ai_addrlen) == 0
    && ::listen(out.descriptor_, 128) == 0)
    return out;
  const int why = errno;
  std::string remedy;
  if (why == EADDRINUSE)
    remedy = "; another process listens there: take another port, or 0 for any";
  else if (why == EADDRNOTAVAIL)
    remedy = "; give an address of this machine, such as 127.0.0.1";
  else if (why == EACCES)
    remedy = "; ports below 1024 are for root";
  return fail(
    errc::invalid_input, "--listen " + to_string(where) + ": " + std::strerror(why) + remedy);
}

listening_socket::listening_socket(listening_socket&& other) noexcept
  : descriptor_(other.release()) {}

listening_socket& listening_socket::operator=(listening_socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

listening_socket::~listening_socket() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

uint16_t listening_socket::port() const {
  sockaddr_storage here{};
  socklen_t size = sizeof(here);
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&here), &size) != 0)
    return 0;
  return ntohs(here.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&here)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&here)->sin_port);
}

int listening_socket::release() {
  return std::exchange(descriptor_, -1);
}

} // namespace gristmill
