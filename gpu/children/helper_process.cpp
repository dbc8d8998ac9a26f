#include "gpu/children/helper_process.hpp"

#include "protocol/child_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

using clock = std::chrono::steady_clock;

/// Lines of one helper as they come.
class listener {
public:
  listener(const std::string& nonce, helper_end& into, const hear_line& heard)
    : nonce_(nonce), into_(into), heard_(heard) {}

  /// False when the protocol is broken.
  bool take(std::string_view bytes, clock::time_point now) {
    partial_.append(bytes);
    for (size_t end; (end = partial_.find('\n')) != std::string::npos;) {
      const auto line = partial_.substr(0, end);
      partial_.erase(0, end + 1);
      auto read = parse_child_line(line, nonce_);
      if (!read || done_)
        return false;
      last_ = now;
      if (read->kind == child_line_kind::heartbeat)
        continue;
      bytes_ += line.size() + 1;
      if (bytes_ > child_line_bytes_max)
        return false;
      done_ = read->kind == child_line_kind::done;
      into_.lines.push_back(line);
      heard_(read->kind, line);
    }
    return partial_.size() <= child_line_bytes_max;
  }

  bool is_done() const { return done_; }
  clock::time_point last() const { return last_; }
  void start(clock::time_point now) { last_ = now; }

private:
  const std::string& nonce_;
  helper_end& into_;
  const hear_line& heard_;
  std::string partial_;
  size_t bytes_ = 0;
  bool done_ = false;
  clock::time_point last_;
};

/// Reads to the end of the pipe; kills the helper when one of its times is over.
helper_end::how listen(int from, pid_t pid, listener& lines, const helper_limits& limits) {
  const auto begin = clock::now();
  lines.start(begin);
  std::array<char, 65536> buffer{};
  auto end = helper_end::how::no_done;
  const auto condemn = [&](helper_end::how why) {
    if (end == helper_end::how::no_done)
      end = why;
    kill(pid, SIGKILL);
  };
  for (;;) {
    const auto due = std::min(begin + limits.deadline, lines.last() + limits.silence);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - clock::now()).count();
    pollfd one{from, POLLIN, 0};
    // Once it is condemned only the end of the pipe is waited for.
    const int timeout =
      end != helper_end::how::no_done ? -1 : static_cast<int>(std::max<long>(left, 0));
    const int ready = poll(&one, 1, timeout);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0) {
      condemn(clock::now() >= begin + limits.deadline ? helper_end::how::deadline
                                                      : helper_end::how::silent);
      continue;
    }
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    if (end == helper_end::how::no_done
      && !lines.take({buffer.data(), static_cast<size_t>(count)}, clock::now()))
      condemn(helper_end::how::protocol_error);
  }
  return end == helper_end::how::no_done && lines.is_done() ? helper_end::how::done : end;
}

int spawn_helper(pid_t& pid, const std::vector<std::string>& command, int lines) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, lines, 1);
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

} // namespace

std::string describe(const helper_end& ended) {
  switch (ended.end) {
  case helper_end::how::done:
    return "done";
  case helper_end::how::no_done:
    return ended.status > 128 ? fmt::format("killed by signal {}", ended.status - 128)
                              : fmt::format("ended without done, exit status {}", ended.status);
  case helper_end::how::deadline:
    return "did not end in time";
  case helper_end::how::silent:
    return "gave no sign of life";
  case helper_end::how::protocol_error:
    return "wrote what is no line of a child";
  }
  return "unknown";
}

result<helper_end> run_helper(const std::string& job_folder, const std::string& nonce,
  const helper_limits& limits, const hear_line& heard) {
  auto self = own_program();
  if (!self)
    return pass(self);
  auto command = helper_command("runner", {std::move(*self), helper_option, job_folder});
  if (!command)
    return pass(command);
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0)
    return fail(errc::io_failed, fmt::format("no pipe for a helper: {}", std::strerror(errno)));
  pid_t pid = -1;
  const int bad = spawn_helper(pid, *command, pipe[1]);
  close(pipe[1]);
  if (bad != 0) {
    close(pipe[0]);
    return fail(errc::io_failed, fmt::format("{}: {}", command->front(), std::strerror(bad)));
  }
  helper_end out;
  listener lines(nonce, out, heard);
  out.end = listen(pipe[0], pid, lines, limits);
  close(pipe[0]);
  int status = 0;
  // It has closed its only pipe; what is left is its exit, which a device in trouble can delay.
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

result<void> become_helper() {
  if (dup2(1, child_channel::descriptor_default) < 0 || dup2(2, 1) < 0)
    return fail(errc::io_failed, fmt::format("a helper's descriptors: {}", std::strerror(errno)));
  return {};
}

} // namespace gristmill
