// The live line of a run: what fits into a width, and what a terminal gets to see.

#include "cli/run_progress.hpp"
#include "tests/cli/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

live_state busy() {
  live_state state;
  state.now.problems_total = 46;
  state.now.problems_finished = 3;
  state.now.attempts_finished = 120;
  state.now.attempts_in_flight = 40;
  state.now.gpu_ns = 12'500'000'000;
  state.now.geomean = f64{2.5};
  state.leases_in_use = 4;
  state.leases_waiting = 17;
  state.limits.wall_ns = 1'200'000'000'000;
  state.limits.attempts = 500;
  state.elapsed = std::chrono::seconds{135};
  return state;
}

constexpr const char* clear_code = "\r\x1b[K";

struct terminal_run {
  std::string seen;
  std::string out;
  int status = -1;
  std::chrono::duration<double> took{0};
};

/// Runs gristmill with stderr on a terminal of that many columns and stdout in a file.
terminal_run on_terminal(std::vector<std::string> arguments, unsigned short columns) {
  const scratch folder;
  int master = -1, slave = -1;
  winsize size{};
  size.ws_col = columns;
  size.ws_row = 24;
  REQUIRE(openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  fcntl(master, F_SETFD, FD_CLOEXEC);
  const char* programs = std::getenv("GRISTMILL_BIN");
  REQUIRE(programs != nullptr);
  arguments.insert(arguments.begin(), std::string(programs) + "/gristmill");
  arguments.insert(arguments.end(), {"--out", (folder / "run").string()});
  std::vector<char*> argv;
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::string path = std::string("PATH=") + (std::getenv("PATH") ? std::getenv("PATH") : "");
  std::string kind = "TERM=xterm";
  char* environment[] = {path.data(), kind.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto out_file = (folder / "out").string();
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out_file.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, slave, 2);
  posix_spawn_file_actions_addclose(&actions, slave);
  const auto started = std::chrono::steady_clock::now();
  pid_t child = -1;
  REQUIRE(posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(slave);

  terminal_run run;
  std::array<char, 4096> buffer;
  // The read fails when nobody has the other end any more.
  for (;;) {
    pollfd waiting{master, POLLIN, 0};
    if (poll(&waiting, 1, 60'000) <= 0) {
      kill(child, SIGKILL);
      break;
    }
    const ssize_t got = read(master, buffer.data(), buffer.size());
    if (got <= 0)
      break;
    run.seen.append(buffer.data(), static_cast<size_t>(got));
  }
  close(master);
  int state = 0;
  waitpid(child, &state, 0);
  run.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  run.took = std::chrono::steady_clock::now() - started;
  std::array<char, 65536> text;
  const int file = open(out_file.c_str(), O_RDONLY);
  const ssize_t got = file < 0 ? 0 : read(file, text.data(), text.size());
  if (file >= 0)
    close(file);
  run.out.assign(text.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return run;
}

/// What stands between one clearing of the line and the next sign that moves the cursor.
std::vector<std::string> live_lines(const std::string& seen) {
  std::vector<std::string> lines;
  const std::string code = clear_code;
  for (size_t at = seen.find(code); at != std::string::npos; at = seen.find(code, at)) {
    at += code.size();
    const auto text = seen.substr(at, seen.find_first_of("\r\n", at) - at);
    if (text.find(" | ") != std::string::npos)
      lines.push_back(text);
  }
  return lines;
}

} // namespace

TEST_CASE("the live line tells attempts, leases, geomean, and what is left of budget and time") {
  const auto line = live_line(busy(), 200);
  for (const char* part : {"120 attempts, 40 in flight", "3/46 problems", "leases 4+17 waiting",
         "geomean 2.50x", "380 attempts left", "17:45 left"}) {
    CAPTURE(part);
    CHECK(line.find(part) != std::string::npos);
  }
  auto without_limits = busy();
  without_limits.limits = {};
  const auto plain = live_line(without_limits, 200);
  CHECK(plain.find("12.5 GPU-s") != std::string::npos);
  CHECK(plain.ends_with("2:15"));
  auto over = busy();
  over.elapsed = std::chrono::hours{2};
  over.now.attempts_finished = 900;
  CHECK(live_line(over, 200).find("0 attempts left") != std::string::npos);
  CHECK(live_line(over, 200).ends_with("0:00 left"));
}

TEST_CASE(
  "the live line is never wider than the terminal, and keeps geomean and time the longest") {
  for (size_t width = 0; width <= 200; ++width) {
    CAPTURE(width);
    CHECK(live_line(busy(), width).size() <= width);
  }
  CHECK(live_line(busy(), 30) == "geomean 2.50x | 17:45 left");
  CHECK(live_line(busy(), 80).find("problems") == std::string::npos);
  CHECK(live_line(busy(), 0).empty());
}

TEST_CASE("a terminal gets one line that is redrawn at most four times a second and then cleared") {
  const auto run = on_terminal(
    {"run", "--gpus", "sleep:150ms:2", "--proposer", "sleep", "--budget", "24attempts", "softmax"},
    60);
  CAPTURE(run.seen);
  const auto lines = live_lines(run.seen);
  REQUIRE_FALSE(lines.empty());
  for (const auto& line : lines) {
    CAPTURE(line);
    CHECK(line.size() < 60);
    CHECK(line.find("geomean") != std::string::npos);
    CHECK(line.find('\x1b') == std::string::npos);
  }
  CHECK(static_cast<double>(lines.size()) <= 4.0 * run.took.count() + 1);
  // Cleared: nothing of the last line is left on the screen.
  const auto last = run.seen.rfind(lines.back());
  CHECK(run.seen.find(clear_code, last) != std::string::npos);
  CHECK(run.out.find('\x1b') == std::string::npos);
  CHECK(run.out.find("geomean") != std::string::npos);
}

TEST_CASE("where stderr is no terminal no escape code is written") {
  const scratch folder;
  program p({"run", "--gpus", "sleep:50ms:2", "--proposer", "sleep", "--budget", "8attempts",
              "softmax", "--out", (folder / "run").string()},
    {{"TERM", "xterm"}});
  p.wait();
  CHECK(p.err().find('\x1b') == std::string::npos);
  CHECK(p.err().find('\r') == std::string::npos);
  CHECK(p.out().find('\x1b') == std::string::npos);
}
