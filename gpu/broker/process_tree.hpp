#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// A process as /proc shows it. `started` (clock ticks since the boot) tells it apart from a later
/// one with the same number.
struct process_entry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t started = 0;
  bool zombie = false;
};

/// Reads the text of /proc/PID/stat. The name in it may hold anything, blanks and brackets
/// included. Nothing when the text is not of that form.
std::optional<process_entry> parse_process_stat(std::string_view text);

/// Nothing when there is no such process (any more).
std::optional<process_entry> process_of(pid_t pid);

/// Whether that very process lives; a zombie does not.
bool lives(pid_t pid, uint64_t started);

/// The user that a process belongs to; nothing when it is gone.
std::optional<uid_t> owner_of(pid_t pid);

/// All processes, zombies left out.
std::vector<process_entry> all_processes();

/// The living descendants of `root`, without `root`. With a subreaper as root nothing that it
/// started can escape: an orphan becomes the subreaper's child.
std::vector<process_entry> descendants_of(pid_t root, const std::vector<process_entry>& all);

struct lease_members {
  std::vector<process_entry> found;
  /// Processes of that user whose environment could not be read, so that they may be members.
  size_t hidden = 0;
};

/// The living processes that belong to a lease: those of its session (0: none), and those with
/// `GRISTMILL_LEASE_ID=<lease>` in their environment. The caller itself is never one.
lease_members members_of(std::string_view lease, pid_t session, uid_t user);

/// Sends the signal to that very process, never to a later one with its number. False when it is
/// gone or is not ours to signal.
bool signal_process(const process_entry& process, int number);

/// What tells one start of the machine from another; empty when the system does not say.
std::string boot_identity();

} // namespace gristmill
