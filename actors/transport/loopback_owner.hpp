#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct sockaddr_storage;

namespace gristmill {

// Without TLS only processes of the same user may talk to each other: whoever tells a node what to
// compile runs programs as its user. The kernel's table of connections says whose process has the
// other end of a loopback connection.

/// An end of a connection as /proc/net/tcp and tcp6 write it: "0100007F:1F90". Empty for an address
/// that the table cannot hold.
std::string table_name_of(const sockaddr_storage& end, bool as_ipv6);

/// User of the established connection that a row of the table describes as seen from `local`;
/// nothing when there is none, or its process has gone.
std::optional<uint32_t> user_in_table(
  std::string_view table, const std::string& local, const std::string& remote);

/// User of the process at the other end of a connected socket of this machine. Nothing when the
/// table does not say.
std::optional<uint32_t> peer_user(int socket);

/// Whether the user may be talked to: ours, or root.
bool is_trusted_user(uint32_t user);

/// Whether the table can be read at all.
bool can_tell_users();

} // namespace gristmill
