#include "gpu/broker/broker_loop.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace gristmill {

result<std::unique_ptr<broker_socket>> broker_socket::listen(
  const std::string& path, bool for_everybody) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(errc::invalid_input,
      fmt::format(
        "--socket {}: a path of 1 to {} bytes is wanted", path, sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // The lock, not the socket, tells whether a broker lives: it goes with its process.
  const auto lock_path = path + ".lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0)
    return fail(errc::io_failed, fmt::format("{}: {}", lock_path, std::strerror(errno)));
  std::unique_ptr<broker_socket> out(new broker_socket(path, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    return fail(errc::refused, fmt::format("another broker listens at {}", path));
  struct stat seen {};
  if (lstat(path.c_str(), &seen) == 0) {
    if (!S_ISSOCK(seen.st_mode))
      return fail(errc::refused, fmt::format("{} exists and is no socket", path));
    unlink(path.c_str());
  }
  out->socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (out->socket_ < 0)
    return fail(errc::io_failed, fmt::format("socket: {}", std::strerror(errno)));
  const auto mask = umask(for_everybody ? 0111 : 0177);
  const bool bound =
    bind(out->socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const auto code = errno;
  umask(mask);
  if (!bound)
    return fail(errc::io_failed, fmt::format("{}: {}", path, std::strerror(code)));
  out->bound_ = true;
  if (::listen(out->socket_, 4096) != 0)
    return fail(errc::io_failed, fmt::format("{}: {}", path, std::strerror(errno)));
  return out;
}

broker_socket::~broker_socket() {
  // The path first: once the lock is gone another broker may have put its own there.
  if (bound_)
    unlink(path_.c_str());
  if (socket_ >= 0)
    close(socket_);
  if (lock_ >= 0)
    close(lock_);
}

} // namespace gristmill
