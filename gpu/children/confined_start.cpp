#include "gpu/children/confined_start.hpp"

#include "gpu/children/private_view.hpp"
#include "gpu/children/task_watch.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The header of glibc 2.36 lacks this.
extern "C" {
#include <sys/pidfd.h>
}

namespace gristmill {

namespace {

constexpr std::string_view ready_word = "ready";
/// bubblewrap looks through all mounts for each one that it makes.
constexpr size_t bubblewrap_entries_max = 200;
constexpr int watch_interval_ms = 100;
/// A measured kernel's host is left alone more.
constexpr int quiet_watch_interval_ms = 1000;
constexpr int killed = 128 + SIGKILL;

tl::unexpected<failure> refused(std::string_view step) {
  return fail(errc::unsupported, fmt::format("{}: {}", step, std::strerror(errno)));
}

int status_of(int state) {
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/// Waits for the word, or for the text that came instead of it, or for the end.
result<pid_t> await_ready(pid_t first, int from, std::string_view who) {
  std::string text;
  char buffer[512];
  for (;;) {
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0 || text.size() > 4096)
      break;
    text.append(buffer, static_cast<size_t>(got));
    if (text == ready_word)
      break;
  }
  close(from);
  if (text == ready_word)
    return first;
  kill(first, SIGKILL);
  int state = 0;
  while (waitpid(first, &state, 0) < 0 && errno == EINTR) {
  }
  return fail(errc::unsupported,
    text.empty() ? fmt::format("{} ended with status {}", who, status_of(state)) : text);
}

/// The first process of the namespaces: all orphans come to it, and with it everything ends.
[[noreturn]] void be_first(int ready, int parent, const confinement& wanted,
  unsigned long namespaces, uid_t user, gid_t group, const become_command& become) {
  auto give_up = [&](const failure& why) {
    (void)!write(ready, why.what.data(), why.what.size());
    _exit(1);
  };
  pollfd gone{parent, POLLIN, 0};
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || poll(&gone, 1, 0) != 0)
    _exit(1);
  if ((namespaces & CLONE_NEWUSER) != 0)
    if (auto kept = keep_user(user, group); !kept)
      give_up(kept.error());
  // A change of credentials takes it back.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (auto entered = enter_view(wanted, (namespaces & CLONE_NEWPID) != 0); !entered)
    give_up(entered.error());
  const pid_t command = fork();
  if (command < 0)
    give_up({errc::unsupported, fmt::format("fork: {}", std::strerror(errno))});
  if (command == 0) {
    close(parent);
    const auto why = become(ready);
    give_up(why);
  }
  // The command must not find a way through us.
  prctl(PR_SET_DUMPABLE, 0);
  for (const int each : {ready, parent, 0, 1, 2, 3})
    close(each);
  for (;;) {
    int state = 0;
    const pid_t ended = waitpid(-1, &state, 0);
    if (ended == command || (ended < 0 && errno == ECHILD))
      _exit(ended < 0 ? 1 : status_of(state));
  }
}

result<pid_t> start_with(
  const confinement& wanted, unsigned long namespaces, const become_command& become) {
  std::array<int, 2> ready{};
  const int self = pidfd_open(getpid(), 0);
  if (self < 0 || pipe2(ready.data(), O_CLOEXEC) != 0)
    return refused("a pipe");
  const uid_t user = geteuid();
  const gid_t group = getegid();
  // As fork, with namespaces. No thread runs here, so nothing is left locked in the copy.
  const long first = syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (first == 0) {
    close(ready[0]);
    be_first(ready[1], self, wanted, namespaces, user, group, become);
  }
  const int why = errno;
  close(ready[1]);
  close(self);
  if (first < 0) {
    close(ready[0]);
    errno = why;
    return refused("namespaces");
  }
  return await_ready(static_cast<pid_t>(first), ready[0], "the first process");
}

/// What did not stay in the process namespace, where there is none.
void end_descendants() {
  for (int turn = 0; turn < 1000; ++turn) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto left = count_tasks(getpid(), UINT64_MAX);
    if (left.processes.empty())
      return;
    for (const pid_t each : left.processes)
      kill(each, SIGKILL);
    poll(nullptr, 0, 2);
  }
}

std::string excess(const confinement& wanted) {
  if (wanted.tasks_max != 0 && count_tasks(getpid(), wanted.tasks_max).tasks > wanted.tasks_max)
    return fmt::format("more than {} processes and threads", wanted.tasks_max);
  if (wanted.directory_bytes_max != 0
    && bytes_below(wanted.directory, wanted.directory_bytes_max) > wanted.directory_bytes_max)
    return fmt::format(
      "more than {} MiB of files, or too many of them", wanted.directory_bytes_max >> 20);
  return {};
}

} // namespace

void say_ready(int ready) {
  (void)!write(ready, ready_word.data(), ready_word.size());
  close(ready);
}

result<pid_t> start_in_own_namespaces(const confinement& wanted, const become_command& become) {
  unsigned long namespaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
  if (wanted.own_network)
    namespaces |= CLONE_NEWNET;
  if (wanted.own_processes)
    namespaces |= CLONE_NEWPID;
  auto started = start_with(wanted, namespaces | CLONE_NEWUSER, become);
  // In a namespace of its own the super-user may not enter other people's folders; it needs none.
  if (!started && geteuid() == 0)
    if (auto again = start_with(wanted, namespaces, become))
      return again;
  return started;
}

result<pid_t> start_in_bubblewrap(
  const std::string& bubblewrap, const confinement& wanted, std::vector<std::string> command) {
  if (wanted.view.size() > bubblewrap_entries_max)
    return fail(errc::unsupported, "bubblewrap: too many files to show");
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0)
    return refused("a pipe");
  auto words = bubblewrap_arguments(wanted);
  words.insert(words.begin(), bubblewrap);
  words.emplace_back("--");
  for (auto& word : command)
    words.push_back(word == "FD" ? std::to_string(ready[1]) : std::move(word));
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t self = getpid();
  const pid_t first = fork();
  if (first == 0) {
    fcntl(ready[1], F_SETFD, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != self)
      _exit(1);
    execv(argv[0], argv.data());
    const auto why = fmt::format("{}: {}", bubblewrap, std::strerror(errno));
    (void)!write(ready[1], why.data(), why.size());
    _exit(1);
  }
  close(ready[1]);
  if (first < 0) {
    close(ready[0]);
    return refused("fork");
  }
  return await_ready(first, ready[0], "bubblewrap");
}

int stand_by(pid_t first, const confinement& wanted) {
  // Orphans come to us where the command has no first process of its own.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int process = pidfd_open(first, 0);
  const int interval = wanted.own_processes ? watch_interval_ms : quiet_watch_interval_ms;
  int status = killed;
  for (;;) {
    pollfd ended{process, POLLIN, 0};
    if (poll(&ended, 1, interval) < 0 && errno != EINTR)
      break;
    int state = 0;
    if (const pid_t found = waitpid(first, &state, WNOHANG); found != 0) {
      status = found == first ? status_of(state) : killed;
      break;
    }
    if (const auto why = excess(wanted); !why.empty()) {
      fmt::print(stderr, "gristmill-jail: {}: ended\n", why);
      kill(first, SIGKILL);
      while (waitpid(first, &state, 0) < 0 && errno == EINTR) {
      }
      break;
    }
  }
  close(process);
  if (!wanted.own_processes)
    end_descendants();
  return status;
}

} // namespace gristmill
