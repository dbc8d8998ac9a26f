// Who belongs to a lease, as /proc tells.

#include "gpu/broker/process_tree.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;

namespace {

/// A child that waits to be killed, with this in its environment.
pid_t start_child(const std::string& variable) {
  auto pid = fork();
  if (pid == 0) {
    execle("/bin/sleep", "sleep", "30", nullptr,
      std::array<const char*, 2>{variable.c_str(), nullptr}.data());
    _exit(127);
  }
  // Until it is what it shall be: its own environment, not ours.
  for (int n = 0; n < 500; ++n) {
    std::array<char, 64> name{};
    FILE* file = std::fopen(fmt::format("/proc/{}/comm", pid).c_str(), "r");
    if (file) {
      auto got = std::fread(name.data(), 1, name.size() - 1, file);
      std::fclose(file);
      if (std::string(name.data(), got) == "sleep\n")
        break;
    }
    poll(nullptr, 0, 5);
  }
  return pid;
}

void end_child(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

bool contains(const std::vector<process_entry>& all, pid_t pid) {
  for (const auto& p : all)
    if (p.pid == pid)
      return true;
  return false;
}

} // namespace

TEST_CASE("a line of /proc is read whatever the name of the program") {
  auto p = parse_process_stat("42 (a b) (c) R) S 1 40 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 "
                              "987654 1 2 3");
  REQUIRE(p.has_value());
  CHECK(p->pid == 42);
  CHECK(p->parent == 1);
  CHECK(p->session == 7);
  CHECK(p->started == 987654);
  CHECK_FALSE(p->zombie);
  for (const char* bad : {"", "42", "42 (a", "42 (a) ", "x (a) S 1 2 3", "42 (a) S 1"})
    CHECK_FALSE(parse_process_stat(bad).has_value());
}

TEST_CASE("this very process is found, with its parent and its start") {
  auto self = process_of(getpid());
  REQUIRE(self.has_value());
  CHECK(self->parent == getppid());
  CHECK(lives(self->pid, self->started));
  CHECK_FALSE(lives(self->pid, self->started + 1));
  CHECK(owner_of(getpid()) == getuid());
}

TEST_CASE("a process belongs to a lease by its environment, exactly") {
  auto pid = start_child("GRISTMILL_LEASE_ID=abc123");
  CHECK(contains(members_of("abc123", 0, getuid()).found, pid));
  CHECK_FALSE(contains(members_of("abc12", 0, getuid()).found, pid));
  CHECK_FALSE(contains(members_of("bc123", 0, getuid()).found, pid));
  CHECK_FALSE(contains(members_of("abc123", 0, getuid() + 1).found, pid));
  CHECK(contains(descendants_of(getpid(), all_processes()), pid));
  end_child(pid);
  CHECK_FALSE(contains(members_of("abc123", 0, getuid()).found, pid));
}

TEST_CASE("a signal reaches that very process only") {
  auto pid = start_child("X=1");
  auto seen = process_of(pid);
  REQUIRE(seen.has_value());
  auto later = *seen;
  ++later.started;
  CHECK_FALSE(signal_process(later, SIGKILL));
  CHECK(lives(pid, seen->started));
  CHECK(signal_process(*seen, SIGKILL));
  waitpid(pid, nullptr, 0);
  CHECK_FALSE(signal_process(*seen, SIGKILL));
}
