#include "gpu/lease/policy_process.hpp"

#include "gpu/lease/external_messages.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr size_t out_bytes_max = size_t{4} << 20;

} // namespace

result<std::unique_ptr<policy_process>> policy_process::start(const std::string& command) {
  // One socket for both directions: writing to it can be told not to raise SIGPIPE.
  int ends[2];
  // The process sees a plain blocking one.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(errc::io_failed, fmt::format("no socket: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(
    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  std::string text = command;
  char shell[] = "sh";
  char flag[] = "-c";
  char* arguments[] = {shell, flag, text.data(), nullptr};
  pid_t pid = 0;
  int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(errc::io_failed, fmt::format("/bin/sh does not start: {}", std::strerror(error)));
  }
  return std::unique_ptr<policy_process>{new policy_process{pid, ends[0]}};
}

policy_process::~policy_process() {
  ::close(socket_);
  ::kill(-pid_, SIGKILL);
  // The group leader is our child and was just killed, so this is over at once.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR)
    continue;
}

bool policy_process::send(std::string_view line) {
  if (out_.size() + line.size() + 1 > out_bytes_max)
    return false;
  out_ += line;
  out_ += '\n';
  return flush();
}

bool policy_process::flush() {
  while (!out_.empty()) {
    auto sent = ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
      out_.erase(0, static_cast<size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      return true;
    else if (errno != EINTR)
      return false;
  }
  return true;
}

policy_process::outcome policy_process::receive(
  std::string& line, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    if (auto end = in_.find('\n', scanned_); end != std::string::npos) {
      line = in_.substr(0, end);
      in_.erase(0, end + 1);
      scanned_ = 0;
      return outcome::line;
    }
    scanned_ = in_.size();
    if (in_.size() > external_line_bytes_max)
      return outcome::too_long;
    auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{socket_, static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000)));
    if (ready < 0 && errno != EINTR)
      return outcome::ended;
    if (ready == 0)
      return outcome::late;
    if ((wait.revents & POLLOUT) != 0 && !flush())
      return outcome::ended;
    if ((wait.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      char bytes[4096];
      auto got = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got > 0)
        in_.append(bytes, static_cast<size_t>(got));
      else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        return outcome::ended;
    }
  }
}

} // namespace gristmill
