#include "actors/transport/loopback_owner.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gristmill {

namespace {

std::string read_table(const char* file) {
  std::string text;
  const int in = open(file, O_RDONLY | O_CLOEXEC);
  if (in < 0)
    return text;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = read(in, buffer, sizeof(buffer))) > 0)
    text.append(buffer, static_cast<size_t>(got));
  close(in);
  return text;
}

/// The kernel prints addresses as words in its own byte order.
std::string words_of(const unsigned char* bytes, size_t size) {
  std::string out;
  for (size_t i = 0; i < size; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes + i, 4);
    char text[16];
    std::snprintf(text, sizeof(text), "%08X", word);
    out += text;
  }
  return out;
}

std::string_view next_word(std::string_view& line) {
  const auto from = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(from);
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

} // namespace

std::string table_name_of(const sockaddr_storage& end, bool as_ipv6) {
  unsigned char bytes[16] = {};
  size_t size = 16;
  uint16_t port = 0;
  if (end.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &end, sizeof(four));
    port = ntohs(four.sin_port);
    if (as_ipv6) {
      bytes[10] = bytes[11] = 0xff;
      std::memcpy(bytes + 12, &four.sin_addr, 4);
    } else {
      size = 4;
      std::memcpy(bytes, &four.sin_addr, 4);
    }
  } else if (end.ss_family == AF_INET6 && as_ipv6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &end, sizeof(six));
    port = ntohs(six.sin6_port);
    std::memcpy(bytes, &six.sin6_addr, 16);
  } else {
    return {};
  }
  char text[8];
  std::snprintf(text, sizeof(text), ":%04X", port);
  return words_of(bytes, size) + text;
}

std::optional<uint32_t> user_in_table(
  std::string_view table, const std::string& local, const std::string& remote) {
  if (local.empty() || remote.empty())
    return std::nullopt;
  while (!table.empty()) {
    const auto end = std::min(table.find('\n'), table.size());
    auto line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    next_word(line);
    if (next_word(line) != local || next_word(line) != remote)
      continue;
    // 01 is "established"; a connection that its process has closed belongs to nobody and would be
    // shown as root's.
    if (next_word(line) != "01")
      return std::nullopt;
    for (int skipped = 0; skipped < 3; ++skipped)
      next_word(line);
    const auto user_text = next_word(line);
    next_word(line);
    const auto inode = next_word(line);
    uint32_t user = 0;
    const auto* stop = user_text.data() + user_text.size();
    const auto read = std::from_chars(user_text.data(), stop, user);
    if (read.ec != std::errc{} || read.ptr != stop || inode.empty() || inode == "0")
      return std::nullopt;
    return user;
  }
  return std::nullopt;
}

std::optional<uint32_t> peer_user(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof(here);
  socklen_t there_size = sizeof(there);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0
    || getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0)
    return std::nullopt;
  if (here.ss_family == AF_INET)
    if (auto user = user_in_table(
          read_table("/proc/net/tcp"), table_name_of(there, false), table_name_of(here, false)))
      return user;
  return user_in_table(
    read_table("/proc/net/tcp6"), table_name_of(there, true), table_name_of(here, true));
}

bool is_trusted_user(uint32_t user) {
  return user == geteuid() || user == 0;
}

bool can_tell_users() {
  return access("/proc/net/tcp", R_OK) == 0;
}

} // namespace gristmill
