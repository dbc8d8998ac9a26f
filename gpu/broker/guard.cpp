#include "gpu/broker/guard.hpp"

#include "gpu/broker/process_tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

/// How often the guard looks at what is left while it ends processes.
constexpr milliseconds sweep_interval{20};
/// A process that SIGKILL has not ended by then waits for a driver; the broker hears it.
constexpr seconds kill_limit{30};
/// How long the report waits for what the broker found.
constexpr milliseconds closed_limit{1500};

constexpr nanoseconds never = nanoseconds::max();

/// Replaces this process by the command. Answers only when that failed: the reason.
int become_command(const lease_keeper& keeper, const lease_arguments& arguments,
  const std::string& socket, const sigset_t& unblocked, pid_t guard) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard)
    _exit(128 + SIGKILL);
  // A command that signals its own group must not hit the guard.
  setpgid(0, 0);
  const auto& granted = keeper.granted();
  setenv("CUDA_VISIBLE_DEVICES", granted.visible.c_str(), 1);
  setenv("GRISTMILL_LEASE_TOKEN", fmt::format("{}", granted.token).c_str(), 1);
  setenv("GRISTMILL_LEASE_GPU", granted.gpu_name.c_str(), 1);
  setenv("GRISTMILL_LEASE_INDEX", fmt::format("{}", granted.gpu).c_str(), 1);
  setenv("GRISTMILL_LEASE_ID", granted.lease.c_str(), 1);
  setenv("GRISTMILL_LEASE_SOCKET", socket.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : arguments.command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGCHLD})
    signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &unblocked, nullptr);
  execvp(argv[0], argv.data());
  return errno;
}

class guard {
public:
  guard(lease_keeper& keeper, const lease_arguments& arguments, int wire, const sigset_t& unblocked)
    : keeper_(keeper), arguments_(arguments), wire_(wire), unblocked_(unblocked) {}

  guard_report run();

private:
  bool start();
  void reap();
  void read_wire();
  void read_exec();
  void end_work(const std::string& why);
  void sweep(nanoseconds now);
  nanoseconds next_instant(nanoseconds now) const;
  void wait_closed();

  lease_keeper& keeper_;
  const lease_arguments& arguments_;
  int wire_;
  const sigset_t& unblocked_;
  guard_report report_;
  pid_t command_ = -1;
  int exec_pipe_ = -1;
  bool command_ended_ = false;
  bool nothing_left_ = false;
  bool stuck_ = false;
  nanoseconds started_{0};
  nanoseconds command_ended_at_{0};
  /// Set when the work is being ended: then SIGTERM was sent, and SIGKILL is due.
  std::optional<nanoseconds> kill_at_;
  std::optional<nanoseconds> give_up_at_;
  nanoseconds sweep_at_ = never;
  std::set<std::pair<pid_t, uint64_t>> terminated_;
};

bool guard::start() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return false;
  const auto self = getpid();
  command_ = fork();
  if (command_ == 0) {
    const int reason = become_command(keeper_, arguments_,
      arguments_.socket.empty() ? default_broker_socket() : arguments_.socket, unblocked_, self);
    (void)!write(ends[1], &reason, sizeof reason);
    _exit(reason == ENOENT ? lease_exit::not_found : lease_exit::cannot_run);
  }
  close(ends[1]);
  exec_pipe_ = ends[0];
  return command_ > 0;
}

/// The pipe closes when the command has replaced our copy; a number says why it could not.
void guard::read_exec() {
  int reason = 0;
  auto got = read(exec_pipe_, &reason, sizeof reason);
  if (got < 0 && errno == EINTR)
    return;
  close(exec_pipe_);
  exec_pipe_ = -1;
  if (got > 0)
    fmt::print(stderr, "gristmill lease: {}: {}\n", arguments_.command[0], std::strerror(reason));
  keeper_.started(getpid());
}

void guard::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != command_)
      continue;
    command_ended_ = true;
    command_ended_at_ = broker_now();
    report_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  if (pid < 0 && errno == ECHILD)
    nothing_left_ = true;
  else if (command_ended_ && !kill_at_)
    // It has left something behind, which ends with it.
    end_work("");
}

void guard::read_wire() {
  std::array<unsigned char, 64> bytes{};
  auto got = read(wire_, bytes.data(), bytes.size());
  if (got <= 0) {
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      return;
    wire_ = -1;
    end_work("the client has gone");
    return;
  }
  for (ssize_t i = 0; i < got; ++i) {
    const int number = bytes[static_cast<size_t>(i)];
    if (command_ended_)
      continue;
    // As a terminal would: to the whole group in front.
    if (kill(-command_, number) != 0)
      kill(command_, number);
    if (number == SIGTERM || number == SIGHUP)
      end_work("");
  }
}

void guard::end_work(const std::string& why) {
  if (report_.revoked.empty())
    report_.revoked = why;
  if (kill_at_)
    return;
  const auto now = broker_now();
  kill_at_ = now + arguments_.grace;
  give_up_at_ = *kill_at_ + kill_limit;
  sweep_at_ = now;
}

void guard::sweep(nanoseconds now) {
  auto work = descendants_of(getpid(), all_processes());
  std::set<std::pair<pid_t, uint64_t>> known;
  for (const auto& p : work)
    known.insert({p.pid, p.started});
  // What went through another parent (a daemon that starts programs) but carries the lease.
  for (const auto& p : members_of(keeper_.granted().lease, getpid(), getuid()).found)
    if (known.insert({p.pid, p.started}).second)
      work.push_back(p);
  const bool kill_now = now >= *kill_at_;
  for (const auto& p : work) {
    if (kill_now)
      signal_process(p, SIGKILL);
    else if (terminated_.insert({p.pid, p.started}).second) {
      // SIGCONT: one that is stopped would not hear it.
      signal_process(p, SIGTERM);
      signal_process(p, SIGCONT);
      ++report_.ended_processes;
    }
    if (kill_now && terminated_.insert({p.pid, p.started}).second)
      ++report_.ended_processes;
  }
  if (work.empty() && !nothing_left_)
    reap();
  stuck_ = now >= *give_up_at_ && !work.empty();
  // Between the two signals a look now and then is enough for what forks anew.
  sweep_at_ = kill_now ? now + sweep_interval : std::min(now + 10 * sweep_interval, *kill_at_);
}

nanoseconds guard::next_instant(nanoseconds now) const {
  auto out = keeper_.next_step(now);
  if (!kill_at_)
    out = std::min(out, keeper_.deadline());
  return std::min(out, sweep_at_);
}

void guard::wait_closed() {
  const auto end = broker_now() + closed_limit;
  while (keeper_.descriptor() >= 0 && broker_now() < end) {
    auto news = keeper_.step(broker_now());
    if (news.closed) {
      report_.probe = news.closed->probe;
      return;
    }
    pollfd readable{keeper_.descriptor(), POLLIN, 0};
    poll(&readable, keeper_.descriptor() >= 0 ? 1 : 0, 50);
  }
}

guard_report guard::run() {
  report_.gpu = keeper_.granted().gpu_name;
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t child;
  sigemptyset(&child);
  for (int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    sigaddset(&child, number);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  started_ = broker_now();
  if (!start()) {
    fmt::print(stderr, "gristmill lease: cannot start a process: {}\n", std::strerror(errno));
    report_.exit_code = lease_exit::cannot_run;
    nothing_left_ = true;
    command_ended_ = true;
    command_ended_at_ = broker_now();
  }
  while (!nothing_left_ && !stuck_) {
    auto now = broker_now();
    std::array<pollfd, 4> watched{pollfd{signals, POLLIN, 0}, pollfd{wire_, POLLIN, 0},
      pollfd{keeper_.descriptor(), POLLIN, 0}, pollfd{exec_pipe_, POLLIN, 0}};
    auto wait = std::clamp<nanoseconds>(next_instant(now) - now, nanoseconds{0}, seconds{10});
    poll(watched.data(), watched.size(),
      static_cast<int>(std::chrono::ceil<milliseconds>(wait).count()));
    now = broker_now();
    if (exec_pipe_ >= 0 && watched[3].revents != 0)
      read_exec();
    if (watched[0].revents != 0) {
      signalfd_siginfo seen{};
      while (read(signals, &seen, sizeof seen) == sizeof seen)
        if (seen.ssi_signo != SIGCHLD)
          end_work("the guard was told to end");
      reap();
    }
    if (wire_ >= 0 && watched[1].revents != 0)
      read_wire();
    auto news = keeper_.step(now);
    if (news.revoked && !nothing_left_)
      end_work(*news.revoked);
    if (!nothing_left_ && !kill_at_ && now >= keeper_.deadline()) {
      report_.capped = true;
      end_work("");
    }
    if (!nothing_left_ && kill_at_ && now >= sweep_at_)
      sweep(now);
  }
  close(signals);
  if (exec_pipe_ >= 0)
    read_exec();
  const auto now = broker_now();
  report_.held = now - started_;
  report_.cleaned = command_ended_ ? now - command_ended_at_ : nanoseconds{0};
  if (report_.capped)
    report_.exit_code = lease_exit::capped;
  else if (!report_.revoked.empty())
    report_.exit_code = lease_exit::taken_back;
  if (stuck_)
    keeper_.ended(lease_outcome::hang, "a process does not end by SIGKILL");
  else
    keeper_.ended(report_.capped ? lease_outcome::hang : lease_outcome::fine,
      report_.capped ? "cap" : fmt::format("exit {}", report_.exit_code));
  wait_closed();
  return report_;
}

} // namespace

guard_report guard_command(
  lease_keeper& keeper, const lease_arguments& arguments, int wire, const sigset_t& unblocked) {
  return guard(keeper, arguments, wire, unblocked).run();
}

void kill_descendants() {
  const auto end = broker_now() + kill_limit;
  while (broker_now() < end) {
    pid_t pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD)
      return;
    for (const auto& p : descendants_of(getpid(), all_processes()))
      signal_process(p, SIGKILL);
    poll(nullptr, 0, 2);
  }
}

} // namespace gristmill
