#pragma once

#include "messages/child.hpp"
#include "messages/result.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gristmill {

struct child_loop_limits {
  /// Folder with gristmill-jail and the programs that it starts.
  std::string program_folder;
  /// How many children of each profile run at once, in the order of `child_profile`.
  std::array<uint32_t, 5> parallel{1, 1, 1, 1, 1};
  /// How many children may wait for their turn, all profiles together.
  size_t waiting_max = 256;
  /// How long a killed group may take to vanish before its child is given up.
  std::chrono::nanoseconds group_gone_within = std::chrono::seconds{5};
};

/// Starts children and waits for them, in one thread of its own, without CAF.
///
/// Each child gets its own process group and is started through `gristmill-jail`. When it ends, in
/// whatever way, the whole group is killed, and only when no process of the group is left is the
/// callback called: after it, nothing of the child touches a device or a file. A group that
/// outlives SIGKILL for longer than `group_gone_within` turns `done` into `no_done`, and the log
/// says so.
///
/// The process becomes the reaper of its orphaned descendants, so that a grandchild never lingers
/// as a zombie in its group. The loop's thread is the parent of all children: they die with it.
class child_loop {
public:
  /// Called once for each accepted request, in the loop's thread: it must not block, throw or call
  /// `stop`. It may call `submit` and `cancel`.
  using callback = std::function<void(child_result)>;

  explicit child_loop(child_loop_limits limits);
  child_loop(const child_loop&) = delete;
  child_loop& operator=(const child_loop&) = delete;
  /// As `stop`.
  ~child_loop();

  /// Safe from any thread; never blocks on a child. The deadline counts from the start of the
  /// child, not from here. `argv[0]` without a slash is a program in `program_folder`. Errors,
  /// without a callback: `queue_full`, `shutting_down`, and `invalid_input` for an id in use, an
  /// empty argv, a deadline of 0 or less, or a nonce or job directory that is empty.
  result<void> submit(child_request request, callback answer);

  /// Kills the child, or takes it out of the queue; its callback follows with `cancelled`. An
  /// unknown id is no error: the child may just have ended.
  void cancel(uint64_t id);

  /// SIGTERM to the group of a child that runs; one in the queue is taken out of it. Its deadline
  /// goes on, and `cancel` may follow.
  void terminate(uint64_t id);

  /// Kills every child, answers every callback with `cancelled` and ends the thread.
  void stop();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace gristmill
