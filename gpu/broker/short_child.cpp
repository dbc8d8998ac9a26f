#include "gpu/broker/short_child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr size_t output_bytes_max = size_t{256} << 10;

} // namespace

short_child::short_child(const std::vector<std::string>& command) {
  std::array<int, 2> pipe_ends{-1, -1};
  if (command.empty() || pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    return;
  fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // The signals that the broker blocks or ignores are none of the child's business; its own group,
  // so that Ctrl-C at the broker does not look like a fault of the GPU.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int failed = posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (failed != 0) {
    pid_ = -1;
    close(pipe_ends[0]);
    return;
  }
  output_ = pipe_ends[0];
}

short_child::~short_child() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, WNOHANG);
  }
  if (output_ >= 0)
    close(output_);
}

bool short_child::pump() {
  std::array<char, 4096> part{};
  while (output_ >= 0) {
    auto got = read(output_, part.data(), part.size());
    if (got < 0 && errno == EAGAIN)
      break;
    if (got <= 0) {
      close(output_);
      output_ = -1;
      break;
    }
    if (answer_.output.size() < output_bytes_max)
      answer_.output.append(part.data(), static_cast<size_t>(got));
  }
  if (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_)
      return false;
    answer_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
    if (output_ >= 0)
      return pump();
  }
  return true;
}

probe_answer run_short_child(
  const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  short_child child(command);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!child.pump()) {
    if (std::chrono::steady_clock::now() >= end)
      return {};
    pollfd wait{child.descriptor(), POLLIN, 0};
    // The end of its output does not tell that it has ended.
    poll(&wait, child.descriptor() >= 0 ? 1 : 0, 5);
  }
  return child.answer();
}

} // namespace gristmill
