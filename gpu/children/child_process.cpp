#include "gpu/children/child_process.hpp"

#include "gpu/children/jail.hpp"
#include "gpu/children/job_directory.hpp"
#include "protocol/child_channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

// The header of glibc 2.36 lacks this.
extern "C" {
#include <sys/pidfd.h>
}

namespace gristmill {

namespace {

constexpr size_t log_bytes_max = 64 * 1024;
/// Above the descriptors that the child sees, so that no end of a pipe is overwritten by another.
constexpr int pipe_descriptor_min = 10;

void close_if_open(int& descriptor) {
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
}

struct pipe_ends {
  int read = -1;
  int write = -1;
  pipe_ends() = default;
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    close_if_open(read);
    close_if_open(write);
  }

  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      return false;
    read = fcntl(ends[0], F_DUPFD_CLOEXEC, pipe_descriptor_min);
    write = fcntl(ends[1], F_DUPFD_CLOEXEC, pipe_descriptor_min);
    close(ends[0]);
    close(ends[1]);
    return read >= 0 && write >= 0 && fcntl(read, F_SETFL, O_NONBLOCK) == 0;
  }
};

/// posix_spawn with the descriptors, the group and the signals that a child begins with.
int spawn(pid_t& pid, const std::string& program, const std::vector<std::string>& arguments,
  int lines, int log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log, 1);
  posix_spawn_file_actions_adddup2(&actions, log, 2);
  posix_spawn_file_actions_adddup2(&actions, lines, child_channel::descriptor_default);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
    &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

/// CPU seconds that no child within its deadline needs, even with a few threads.
uint64_t cpu_seconds_for(std::chrono::nanoseconds deadline) {
  return static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(deadline).count()) * 4 + 60;
}

} // namespace

result<child_process> child_process::start(
  child_request request, const std::string& program_folder, instant now) {
  pipe_ends lines, log;
  if (!lines.open() || !log.open())
    return fail(errc::io_failed, fmt::format("no pipe for a child: {}", std::strerror(errno)));
  jail_command command;
  command.profile = request.profile;
  command.parent = getpid();
  command.directory = request.job_directory;
  command.device = request.device;
  command.cpu_seconds = cpu_seconds_for(request.deadline);
  command.command = request.argv;
  if (command.command[0].find('/') == std::string::npos)
    command.command[0] = program_folder + "/" + command.command[0];
  child_process child;
  const auto jail = program_folder + "/gristmill-jail";
  if (const int error = spawn(child.pid_, jail, jail_arguments(command), lines.write, log.write))
    return fail(errc::io_failed, fmt::format("{}: {}", jail, std::strerror(error)));
  child.process_ = pidfd_open(child.pid_, 0);
  if (child.process_ < 0) {
    const int error = errno;
    kill(-child.pid_, SIGKILL);
    waitpid(child.pid_, nullptr, 0);
    return fail(
      errc::io_failed, fmt::format("no descriptor for a child: {}", std::strerror(error)));
  }
  child.lines_ = std::exchange(lines.read, -1);
  child.log_ = std::exchange(log.read, -1);
  child.started_ = child.last_line_ = now;
  child.result_.id = request.id;
  // Best effort: without the file a restart removes the folder and relies on the parent-death
  // signal.
  (void)write_group_file(request.job_directory, child.pid_);
  child.request_ = std::move(request);
  return child;
}

child_process::child_process(child_process&& other) noexcept {
  *this = std::move(other);
}

child_process& child_process::operator=(child_process&& other) noexcept {
  std::swap(request_, other.request_);
  std::swap(pid_, other.pid_);
  std::swap(process_, other.process_);
  std::swap(lines_, other.lines_);
  std::swap(log_, other.log_);
  std::swap(started_, other.started_);
  std::swap(last_line_, other.last_line_);
  std::swap(reaped_at_, other.reaped_at_);
  std::swap(partial_, other.partial_);
  std::swap(line_bytes_, other.line_bytes_);
  std::swap(saw_done_, other.saw_done_);
  std::swap(condemned_, other.condemned_);
  std::swap(reaped_, other.reaped_);
  std::swap(result_, other.result_);
  return *this;
}

child_process::~child_process() {
  close_if_open(process_);
  close_if_open(lines_);
  close_if_open(log_);
}

void child_process::condemn(child_end why) {
  if (condemned_)
    return;
  condemned_ = true;
  result_.end = why;
  if (!reaped_)
    kill(-pid_, SIGKILL);
}

void child_process::terminate() {
  if (!reaped_)
    kill(-pid_, SIGTERM);
}

void child_process::take_line(std::string_view text, instant now) {
  if (saw_done_)
    return condemn(child_end::protocol_error);
  auto line = parse_child_line(text, request_.nonce);
  if (!line) {
    result_.log += "[gristmill] " + line.error().what + "\n";
    return condemn(child_end::protocol_error);
  }
  last_line_ = now;
  if (line->kind == child_line_kind::heartbeat)
    return;
  line_bytes_ += text.size() + 1;
  if (line_bytes_ > child_line_bytes_max) {
    result_.log += "[gristmill] more than 1 MiB of lines\n";
    return condemn(child_end::protocol_error);
  }
  result_.lines.emplace_back(text);
  saw_done_ = line->kind == child_line_kind::done;
}

void child_process::read_lines(instant now) {
  // A bounded number of reads a turn: a child that writes without end must not keep the loop from
  // the others.
  char buffer[65536];
  for (int turn = 0; lines_ >= 0 && turn < 32; ++turn) {
    const ssize_t n = read(lines_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return;
    if (n == 0)
      return close_if_open(lines_);
    if (condemned_)
      continue; // Nothing that it says counts any more.
    partial_.append(buffer, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; !condemned_ && (end = partial_.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      take_line(std::string_view(partial_).substr(begin, end - begin), now);
    partial_.erase(0, begin);
    if (!condemned_ && partial_.size() > child_line_bytes_max) {
      result_.log += "[gristmill] a line of more than 1 MiB\n";
      condemn(child_end::protocol_error);
    }
  }
}

void child_process::read_log() {
  char buffer[16384];
  for (int turn = 0; log_ >= 0 && turn < 32; ++turn) {
    const ssize_t n = read(log_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return;
    if (n == 0)
      return close_if_open(log_);
    // What goes beyond the limit is read and dropped, so that the child does not block on it.
    const size_t room = log_bytes_max - std::min(log_bytes_max, result_.log.size());
    result_.log.append(buffer, std::min(room, static_cast<size_t>(n)));
  }
}

void child_process::read_available(instant now) {
  read_lines(now);
  read_log();
}

void child_process::check_time(instant now) {
  if (now - started_ >= request_.deadline)
    condemn(child_end::deadline);
  else if (request_.silence_limit.count() > 0 && now - last_line_ >= request_.silence_limit)
    condemn(child_end::silent);
}

child_process::instant child_process::next_check() const {
  // Nothing but its end is waited for, and that is an event.
  if (condemned_)
    return instant::max();
  auto next = started_ + request_.deadline;
  if (request_.silence_limit.count() > 0)
    next = std::min(next, last_line_ + request_.silence_limit);
  return next;
}

bool child_process::reap(instant now) {
  if (reaped_)
    return true;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0
    || info.si_pid == 0)
    return false;
  // While the leader is a zombie its number cannot be used again, so this hits its own group only.
  // Whoever is still in it was started by the child and has no business to outlive it.
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result_.wall = now - started_;
  reaped_ = true;
  reaped_at_ = now;
  return true;
}

bool child_process::group_gone() {
  // Orphans of the group come to the nearest reaper; if that is us they are zombies until now.
  while (waitpid(-pid_, nullptr, WNOHANG) > 0) {
  }
  return kill(-pid_, 0) != 0 && errno == ESRCH;
}

bool child_process::group_overdue(instant now, std::chrono::nanoseconds limit) const {
  return reaped_ && now - reaped_at_ >= limit;
}

child_result child_process::finish(bool gone) {
  read_available(reaped_at_);
  auto answer = std::move(result_);
  if (!condemned_) {
    const bool never_ran = answer.lines.empty()
      && (answer.status == jail_exit_usage || answer.status == jail_exit_failed);
    answer.end = saw_done_ ? child_end::done
      : never_ran          ? child_end::could_not_start
                           : child_end::no_done;
    if (!saw_done_ && !partial_.empty())
      answer.log += "[gristmill] the last line broke off\n";
  }
  if (!gone) {
    answer.group_left = true;
    answer.log += fmt::format("[gristmill] process group {} outlives SIGKILL\n", pid_);
    if (answer.end == child_end::done)
      answer.end = child_end::no_done;
  }
  return answer;
}

} // namespace gristmill
