#include "gpu/toolchain/compiler_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace gristmill {

namespace {

using clock = std::chrono::steady_clock;

class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { reset(); }
  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0)
      close(fd_);
    fd_ = -1;
  }

private:
  int fd_;
};

struct spawn_settings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  spawn_settings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

/// Reads until the end or the deadline; false at the deadline. What is too much is read and
/// dropped, so that the child never blocks on a full pipe.
bool read_until(int fd, clock::time_point deadline, std::string& output) {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0)
      return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 60'000)));
    if (ready < 0 && errno != EINTR)
      return true;
    if (ready <= 0)
      continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR))
      return true;
    if (got > 0)
      output.append(buffer.data(),
        std::min(static_cast<size_t>(got), compiler_run::output_max - output.size()));
  }
}

} // namespace

result<compiler_run> run_compiler(const std::string& program,
  const std::vector<std::string>& arguments, const std::filesystem::path& folder,
  std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(errc::io_failed, fmt::format("making a pipe: {}", std::strerror(errno)));
  const descriptor from(ends[0]);
  descriptor to(ends[1]);

  spawn_settings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, to.get(), 1);
  posix_spawn_file_actions_adddup2(&settings.actions, to.get(), 2);
  posix_spawn_file_actions_addchdir_np(&settings.actions, folder.c_str());
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&settings.attributes, 0);

  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string locale = "LC_ALL=C", temporary = "TMPDIR=.";
  char* environment[] = {locale.data(), temporary.data(), nullptr};

  pid_t child = 0;
  const int error = posix_spawn(
    &child, program.c_str(), &settings.actions, &settings.attributes, argv.data(), environment);
  if (error != 0)
    return fail(errc::io_failed, fmt::format("starting {}: {}", program, std::strerror(error)));
  to.reset();

  compiler_run run;
  run.timed_out = !read_until(from.get(), clock::now() + limit, run.output);
  // Also ends what a finished compiler may have left behind; it is in the same group, and the child
  // has not been waited for yet, so its number is still its own. A jail may have taken the compiler
  // into its own group, hence both.
  if (run.timed_out) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
  }
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  run.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return run;
}

} // namespace gristmill
