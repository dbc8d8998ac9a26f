#pragma once

#include "gpu/broker/client.hpp"
#include "gpu/broker/lease_arguments.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// Exit codes of `gristmill lease` besides those of the command.
struct lease_exit {
  static constexpr int usage = 2;
  static constexpr int no_broker = 69;
  static constexpr int no_turn = 75;
  static constexpr int capped = 124;
  /// The broker took the lease back before the cap.
  static constexpr int taken_back = 125;
  static constexpr int cannot_run = 126;
  static constexpr int not_found = 127;
};

/// What became of a command under a lease.
struct guard_report {
  int exit_code = 0;
  bool capped = false;
  /// Why the lease was taken back; empty when it was not.
  std::string revoked;
  std::chrono::nanoseconds held{0};
  /// From the end of the command until nothing of it was left.
  std::chrono::nanoseconds cleaned{0};
  /// Processes that the command left behind, or that had to be ended with it.
  uint32_t ended_processes = 0;
  /// As the broker found the GPU; nothing when it did not say in time.
  std::optional<probe_report> probe;
  std::string gpu;
};

/// A line of JSON, so that it can cross a pipe.
std::string guard_report_text(const guard_report& report);
result<guard_report> parse_guard_report(std::string_view text);

/// Runs the command under the lease to the end of its last process, and tells the broker. Call it
/// in a process of its own, which becomes the leader of a session and the reaper of all that the
/// command starts, so that nothing escapes by a second fork or a session of its own. `wire` is a
/// connection to whoever waits for the report: each byte from there is a signal to pass on, its
/// end means that nobody waits any more, which ends the command. `unblocked` is the signal mask
/// that the command gets.
///
/// At the cap, when the lease is taken back, and when nobody waits any more: SIGTERM to every
/// process, `grace` later SIGKILL, until nothing is left.
guard_report guard_command(
  lease_keeper& keeper, const lease_arguments& arguments, int wire, const sigset_t& unblocked);

/// Ends all descendants of this process, which must be a reaper: SIGKILL until none is left.
void kill_descendants();

/// The program `gristmill-lease`: all that stands behind `gristmill lease`.
int lease_program(const std::vector<std::string>& arguments);

} // namespace gristmill
