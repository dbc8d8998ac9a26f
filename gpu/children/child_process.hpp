#pragma once

#include "messages/child.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <sys/types.h>

namespace gristmill {

/// One started child and all that the loop knows of it. Not thread-safe: the loop's thread only.
class child_process {
public:
  using instant = std::chrono::steady_clock::time_point;

  /// Starts the command through the jail, in a process group of its own.
  static result<child_process> start(
    child_request request, const std::string& program_folder, instant now);

  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) noexcept;
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Closes the descriptors. The process must have been reaped.
  ~child_process();

  const child_request& request() const { return request_; }
  int process_descriptor() const { return process_; }
  int lines_descriptor() const { return lines_; }
  int log_descriptor() const { return log_; }

  /// Reads what has come. A broken protocol condemns the child.
  void read_available(instant now);
  /// Condemns a child whose time is over.
  void check_time(instant now);
  /// The next instant at which `check_time` may do something.
  instant next_check() const;
  /// Kills the group; the first reason stays.
  void condemn(child_end why);
  /// SIGTERM to the group of a process that was not reaped.
  void terminate();

  /// Reaps the child if it has exited; from then on the group is being emptied.
  bool reap(instant now);
  bool reaped() const { return reaped_; }
  /// True when no process of the group is left. Reaps orphans of the group that came to us.
  bool group_gone();
  /// True when the wait for the group has taken too long.
  bool group_overdue(instant now, std::chrono::nanoseconds limit) const;
  /// The answer; `gone` tells whether the group vanished.
  child_result finish(bool gone);

private:
  child_process() = default;
  void read_lines(instant now);
  void read_log();
  void take_line(std::string_view line, instant now);

  child_request request_;
  pid_t pid_ = -1;
  int process_ = -1;
  int lines_ = -1;
  int log_ = -1;
  instant started_;
  instant last_line_;
  instant reaped_at_;
  std::string partial_;
  size_t line_bytes_ = 0;
  bool saw_done_ = false;
  bool condemned_ = false;
  bool reaped_ = false;
  child_result result_;
};

} // namespace gristmill
