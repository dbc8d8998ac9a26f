#pragma once

#include "messages/child.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// What a profile of `gristmill-jail` allows. Bytes; 0 means "not limited".
struct jail_limits {
  uint64_t address_space = 0;
  uint64_t file_size = 0;
  uint64_t open_files = 0;
  uint64_t cpu_seconds = 0;
  /// No network, if that can be had.
  bool own_network = false;
  /// Processes and threads, where they can be counted apart from the person's.
  uint32_t tasks = 0;
};

jail_limits limits_of(child_profile profile);

/// `gristmill-jail [--nested] [--inside FD] [--parent PID] [--directory DIR] [--device NAME]
/// [--cpu-seconds N] PROFILE -- CMD ARG…`
struct jail_command {
  child_profile profile = child_profile::runner;
  /// A helper of a child: stays in its group and within its limits, and dies with it.
  bool nested = false;
  /// Who must still be the parent once the parent-death signal is armed; 0 means "do not check".
  pid_t parent = 0;
  std::string directory;
  /// The device that the child works on; a real one's nodes are shown to a runner.
  std::string device;
  /// Started by bubblewrap, in the namespaces already: the descriptor on which to say so. 0: not
  /// so.
  int inside = 0;
  /// Replaces the profile's figure when not 0.
  uint64_t cpu_seconds = 0;
  std::vector<std::string> command;
};

/// `invalid_input` that names the argument.
result<jail_command> parse_jail_command(std::span<const std::string> arguments);

/// The other direction, for those who start a jail: the arguments after the program's name.
std::vector<std::string> jail_arguments(const jail_command& command);

/// Applies everything and runs the command: becomes it, or stands by until it has ended and exits
/// with its status (128 and the signal's number where one ended it). Returns only when that failed;
/// never returns when the parent is dead already (the process exits).
///
/// Reads `GRISTMILL_SANDBOX`: `auto` (also when not set), `bubblewrap`, `own`, or `limits`; and
/// `GRISTMILL_SANDBOX_READ`, more paths to show, with colons between. The child finds what protects
/// it in `GRISTMILL_PROTECTIONS`.
failure enter_jail(const jail_command& command);

/// Exit statuses of `gristmill-jail` itself, before the command runs.
constexpr int jail_exit_usage = 125;
constexpr int jail_exit_failed = 126;

} // namespace gristmill
