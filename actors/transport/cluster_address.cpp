#include "actors/transport/cluster_address.hpp"

#include <arpa/inet.h>
#include <charconv>

namespace gristmill {

namespace {

result<cluster_address> refuse(std::string_view flag, std::string_view text, const char* why) {
  return fail(errc::invalid_input,
    std::string(flag) + " " + std::string(text) + ": " + why
      + "; write HOST:PORT, such as 127.0.0.1:4711 or [::1]:4711");
}

} // namespace

result<cluster_address> read_cluster_address(
  std::string_view flag, std::string_view text, bool any_port) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return refuse(flag, text, "the port is missing");
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return refuse(flag, text, "an IPv6 address needs brackets");
  if (host.empty())
    return refuse(flag, text, "the host is missing");
  if (host.size() > 253 || host.find_first_of(" \t\n/[]") != std::string_view::npos)
    return refuse(flag, text, "the host is neither a name nor an address");
  uint32_t port = 0;
  const auto* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, port);
  if (digits.empty() || read.ec != std::errc{} || read.ptr != end || port > 65535)
    return refuse(flag, text, "the port is no number from 1 to 65535");
  if (port == 0 && !any_port)
    return refuse(flag, text, "port 0 is only for whoever listens");
  return cluster_address{std::string(host), static_cast<uint16_t>(port)};
}

std::string to_string(const cluster_address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_loopback(const cluster_address& address) {
  if (address.host == "localhost")
    return true;
  in_addr four{};
  if (inet_pton(AF_INET, address.host.c_str(), &four) == 1)
    return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, address.host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

} // namespace gristmill
