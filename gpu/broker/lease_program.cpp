#include "gpu/broker/guard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

/// How often a changed place is told: on a terminal, and in a log.
constexpr seconds watch_terminal{1};
constexpr seconds watch_log{10};
constexpr seconds check_limit{5};

double in_seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// Notes for the person at the terminal. The standard output belongs to the command.
class notes {
public:
  explicit notes(const lease_arguments& arguments)
    : quiet_(arguments.quiet || arguments.json), terminal_(isatty(STDERR_FILENO) == 1) {}

  nanoseconds watch() const {
    if (quiet_)
      return nanoseconds{0};
    return terminal_ ? watch_terminal : watch_log;
  }

  void place(const broker_line& at) {
    if (quiet_)
      return;
    // On a terminal one line is written over and over.
    fmt::print(stderr, "{}gristmill lease: ticket {}, {} ahead, about {:.1f} s to wait{}",
      terminal_ ? "\r" : "", at.ticket, at.ahead, in_seconds(at.estimated_wait),
      terminal_ ? "\x1b[K" : "\n");
    open_line_ = terminal_;
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (quiet_)
      return;
    fmt::print(stderr, "{}gristmill lease: {}\n", open_line_ ? "\r\x1b[K" : "",
      fmt::format(format, std::forward<Args>(args)...));
    open_line_ = false;
  }

  void close_line() {
    if (open_line_)
      fmt::print(stderr, "\n");
    open_line_ = false;
  }

private:
  bool quiet_;
  bool terminal_;
  bool open_line_ = false;
};

int complain(const std::string& what, int code) {
  fmt::print(stderr, "gristmill lease: {}\n", what);
  return code;
}

int code_of(const failure& why) {
  switch (why.code) { // no default: the compiler reports a missing case
  case errc::not_found:
    // An unknown need is not_found as well, but then the broker has spoken.
    return why.what.starts_with("no broker") ? lease_exit::no_broker : lease_exit::usage;
  case errc::invalid_input:
  case errc::unsupported:
  case errc::refused:
    return lease_exit::usage;
  case errc::io_failed:
    return lease_exit::no_broker;
  case errc::queue_full:
  case errc::timed_out:
  case errc::shutting_down:
  case errc::node_lost:
  case errc::lease_expired:
    return lease_exit::no_turn;
  case errc::child_failed:
  case errc::device_fault:
  case errc::budget_exhausted:
  case errc::provider_refused:
    return lease_exit::taken_back;
  }
  return lease_exit::taken_back;
}

template <class Number>
bool number_of(const char* text, Number& out) {
  if (!text)
    return false;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), out);
  return error == std::errc{} && *end == '\0' && end != text;
}

/// Whether this process already works under a lease that is still valid.
bool inside_valid_lease(const std::string& socket) {
  const char* lease = std::getenv("GRISTMILL_LEASE_ID");
  client_line check;
  check.verb = client_verb::check;
  if (!lease || !number_of(std::getenv("GRISTMILL_LEASE_TOKEN"), check.token)
    || !number_of(std::getenv("GRISTMILL_LEASE_INDEX"), check.gpu))
    return false;
  check.lease = lease;
  const auto end = broker_now() + check_limit;
  // A broker that is just being restarted does not make the lease invalid.
  do {
    auto client = broker_client::connect(socket, {});
    if (client) {
      auto answer = client->ask(check, broker_say::ack, check_limit);
      if (answer)
        return answer->applied;
      if (answer.error().code != errc::io_failed)
        return false;
    }
    poll(nullptr, 0, 100);
  } while (broker_now() < end);
  return false;
}

int run_inside(const lease_arguments& arguments) {
  std::vector<char*> argv;
  for (const auto& word : arguments.command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return complain(fmt::format("{}: {}", argv[0], std::strerror(errno)),
    errno == ENOENT ? lease_exit::not_found : lease_exit::cannot_run);
}

std::string command_text(const lease_arguments& arguments) {
  std::string out;
  for (const auto& word : arguments.command)
    out += (out.empty() ? "" : " ") + word;
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return out.substr(0, 200);
}

struct signal_watch {
  sigset_t before{};
  int descriptor = -1;
};

signal_watch watch_signals() {
  signal_watch out;
  sigset_t ours;
  sigemptyset(&ours);
  // SIGTSTP among them: a lease cannot be put to sleep, its time runs on.
  for (int number :
    {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGTSTP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH})
    sigaddset(&ours, number);
  sigprocmask(SIG_BLOCK, &ours, &out.before);
  signal(SIGPIPE, SIG_IGN);
  out.descriptor = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  return out;
}

/// The next signal that has arrived; 0 when none has.
int next_signal(int descriptor) {
  signalfd_siginfo seen{};
  return read(descriptor, &seen, sizeof seen) == sizeof seen ? static_cast<int>(seen.ssi_signo) : 0;
}

bool ends_the_wait(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

void wait_until(const std::vector<int>& descriptors, nanoseconds until) {
  std::vector<pollfd> watched;
  for (int d : descriptors)
    watched.push_back({d, POLLIN, 0});
  auto left = std::clamp<nanoseconds>(until - broker_now(), nanoseconds{0}, seconds{60});
  poll(watched.data(), watched.size(),
    static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
}

/// In the client, while the guard works: passes signals on and waits for the report.
std::optional<guard_report> wait_for_guard(int wire, const signal_watch& signals) {
  std::string text;
  while (true) {
    wait_until({wire, signals.descriptor}, nanoseconds::max());
    while (int number = next_signal(signals.descriptor)) {
      if (number == SIGCHLD || number == SIGTSTP)
        continue;
      const auto byte = static_cast<unsigned char>(number);
      (void)!send(wire, &byte, 1, MSG_NOSIGNAL);
    }
    std::array<char, 4096> part{};
    auto got = recv(wire, part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0)
      text.append(part.data(), static_cast<size_t>(got));
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
      break;
    if (text.ends_with('\n'))
      break;
  }
  auto report = parse_guard_report(text);
  if (!report)
    return std::nullopt;
  return *report;
}

int run_leased(lease_keeper keeper, const lease_arguments& arguments, const signal_watch& signals,
  notes& say, nanoseconds waited, nanoseconds estimated) {
  std::array<int, 2> wire{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire.data()) != 0)
    return complain(std::strerror(errno), lease_exit::cannot_run);
  // Should the guard be killed, what it kept becomes ours to end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto gpu = keeper.granted().gpu_name;
  const auto child = fork();
  if (child < 0)
    return complain(std::strerror(errno), lease_exit::cannot_run);
  if (child == 0) {
    close(wire[0]);
    close(signals.descriptor);
    auto report = guard_command(keeper, arguments, wire[1], signals.before);
    auto text = guard_report_text(report) + "\n";
    (void)!send(wire[1], text.data(), text.size(), MSG_NOSIGNAL);
    // Without the destructors of the client, whose copies these are.
    _exit(0);
  }
  close(wire[1]);
  keeper.let_go();
  auto report = wait_for_guard(wire[0], signals);
  if (!report) {
    kill(child, SIGKILL);
    kill_descendants();
    return complain("the guard was killed; its command was ended with it", 128 + SIGKILL);
  }
  waitpid(child, nullptr, 0);
  if (arguments.json) {
    auto text = guard_report_text(*report);
    text.pop_back();
    fmt::print(stderr, "{},\"waited_ns\":{},\"estimated_wait_ns\":{}}}\n", text, waited.count(),
      estimated.count());
    return report->exit_code;
  }
  if (report->capped)
    complain(fmt::format("ended at the cap after {:.1f} s", in_seconds(report->held)), 0);
  else if (!report->revoked.empty())
    complain("the lease was taken back: " + report->revoked, 0);
  if (report->probe && report->probe->outcome != probe_outcome::passed)
    complain(fmt::format("{} {}: {}", gpu,
               report->probe->outcome == probe_outcome::failed ? "is not as it was"
                                                               : "could not be looked at",
               report->probe->detail),
      0);
  say.line("{}: waited {:.3f} s, held {:.3f} s, cleaned up {:.3f} s{}, exit code {}", gpu,
    in_seconds(waited), in_seconds(report->held), in_seconds(report->cleaned),
    report->ended_processes == 0 ? std::string{}
                                 : fmt::format(" ({} processes ended)", report->ended_processes),
    report->exit_code);
  return report->exit_code;
}

} // namespace

int lease_program(const std::vector<std::string>& words) {
  auto arguments = parse_lease_arguments(words);
  if (!arguments)
    return complain(arguments.error().what, lease_exit::usage);
  if (arguments->help) {
    fmt::print("{}", lease_help());
    return 0;
  }
  const auto socket = arguments->socket.empty() ? default_broker_socket() : arguments->socket;
  arguments->socket = socket;
  if (inside_valid_lease(socket))
    return run_inside(*arguments);

  auto signals = watch_signals();
  notes say(*arguments);
  lease_wish wish;
  wish.what = arguments->what;
  wish.as = arguments->as;
  wish.need = arguments->need;
  wish.command = command_text(*arguments);
  wish.estimate = arguments->estimate;
  wish.cap = arguments->cap;
  wish.patience = arguments->wait;
  const auto asked_at = broker_now();
  lease_waiter waiter(wish, socket, true, say.watch(), asked_at);
  while (true) {
    auto news = waiter.step(broker_now());
    if (news.failed) {
      say.close_line();
      return complain(news.failed->what, code_of(*news.failed));
    }
    if (news.granted)
      break;
    if (news.place && (news.place->ahead > 0 || news.place->estimated_wait > seconds{1}))
      say.place(*news.place);
    wait_until({signals.descriptor, waiter.descriptor()}, waiter.next_step(broker_now()));
    while (int number = next_signal(signals.descriptor))
      if (ends_the_wait(number)) {
        waiter.cancel();
        say.close_line();
        return 128 + number;
      }
  }
  const auto waited = broker_now() - asked_at;
  const auto estimated = waiter.first_estimate().value_or(nanoseconds{0});
  auto keeper = waiter.take();
  if (waited >= milliseconds{500})
    say.line("{} after {:.1f} s, for {:.0f} s at most", keeper.granted().gpu_name,
      in_seconds(waited), in_seconds(keeper.granted().term));
  return run_leased(std::move(keeper), *arguments, signals, say, waited, estimated);
}

} // namespace gristmill
