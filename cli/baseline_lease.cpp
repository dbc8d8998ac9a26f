#include "cli/baseline_lease.hpp"

#include "cli/commands.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gristmill {

namespace {

constexpr int steps_until_up = 200;
constexpr int step_ms = 50;

/// A broker as our child, which ends when we do.
pid_t start_broker(std::vector<std::string> command, const std::string& log) {
  std::vector<char*> argv;
  for (auto& argument : command)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(1);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
    _exit(1);
  // Ctrl-C is ours to handle: a lease may still be out.
  setpgid(0, 0);
  execv(argv[0], argv.data());
  _exit(127);
}

std::string end_of(const std::string& file) {
  auto text = read_text_file(file, size_t{1} << 20);
  if (!text)
    return {};
  std::string last = text->substr(text->size() - std::min<size_t>(text->size(), 600));
  while (!last.empty() && last.back() == '\n')
    last.pop_back();
  return last;
}

} // namespace

result<baseline_leases> baseline_leases::open(
  const std::string& gpus, const std::string& socket, const std::string& scratch) {
  const std::string usual = socket.empty() ? default_broker_socket() : socket;
  if (broker_client::connect(usual, {}))
    return baseline_leases(usual, -1);
  if (!socket.empty())
    return fail(errc::not_found, "--socket " + socket + ": no broker listens there");
  auto folder = program_folder();
  if (!folder)
    return pass(folder);
  const std::string own = scratch + "/broker.sock";
  const std::string log = scratch + "/broker.log";
  const pid_t pid = start_broker({*folder + "/gristmill", "broker", "--gpus", gpus, "--socket", own,
                                   "--state", scratch + "/broker-state"},
    log);
  if (pid < 0)
    return fail(errc::io_failed, fmt::format("no process for a broker: {}", std::strerror(errno)));
  baseline_leases out(own, pid);
  for (int i = 0; i < steps_until_up; ++i) {
    if (broker_client::connect(own, {}))
      return out;
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      out.broker_ = -1;
      return fail(errc::child_failed, "a broker of our own ended at once: " + end_of(log));
    }
    poll(nullptr, 0, step_ms);
  }
  return fail(errc::timed_out, "a broker of our own does not listen: " + end_of(log));
}

baseline_leases::baseline_leases(baseline_leases&& other) noexcept
  : socket_(std::move(other.socket_)), broker_(std::exchange(other.broker_, -1)) {}

baseline_leases::~baseline_leases() {
  if (broker_ < 0)
    return;
  // The second signal ends it at once, should a lease be out still.
  kill(broker_, SIGTERM);
  for (int i = 0; i < steps_until_up; ++i) {
    if (waitpid(broker_, nullptr, WNOHANG) != 0)
      return;
    if (i == steps_until_up / 2)
      kill(broker_, SIGTERM);
    poll(nullptr, 0, step_ms);
  }
  kill(broker_, SIGKILL);
  waitpid(broker_, nullptr, 0);
}

result<broker_lease> baseline_leases::acquire(
  const std::string& what, std::chrono::nanoseconds cap) const {
  lease_wish wish;
  wish.what = lease_class::reference;
  wish.command = what;
  wish.cap = cap;
  return broker_lease::acquire(wish, socket_);
}

std::string baseline_leases::words() const {
  return broker_ < 0 ? "leases of class reference from the broker at " + socket_
                     : "leases of class reference from a broker of its own";
}

} // namespace gristmill
