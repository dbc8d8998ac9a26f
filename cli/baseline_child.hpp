#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// One process of `cli/baseline/baseline_mode.py`, in a process group of its own that is killed
/// with this object. It imports torch at once and touches no GPU before `measure`, so that it can
/// be started while another one still measures.
class baseline_child {
public:
  /// `log` takes what it and its libraries print. Errors: `io_failed`.
  static result<std::unique_ptr<baseline_child>> start(const std::string& python,
    const std::string& script, const std::string& job_file, const std::string& log);
  baseline_child(const baseline_child&) = delete;
  baseline_child& operator=(const baseline_child&) = delete;
  ~baseline_child();

  /// Waits until torch is there; an answer that came instead (torch is missing) is kept for
  /// `measure`. Errors: `timed_out`, `child_failed`.
  result<void> await_ready(std::chrono::nanoseconds limit);

  /// Lets it use the GPU that `visible` names and waits for its answer. After it, in whatever way
  /// it ended, no process of the group is left. Errors: `timed_out`, `child_failed`.
  result<ordered_json> measure(const std::string& visible, std::chrono::nanoseconds limit);

private:
  baseline_child(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}
  result<ordered_json> next_line(std::chrono::steady_clock::time_point until);
  void end();

  pid_t pid_;
  int to_;
  int from_;
  std::string text_;
  ordered_json early_;
};

/// Runs a command of the user by the shell in a folder, with these variables on top ("NAME=value"),
/// until it ends or the limit is over; then its whole process group is ended. Answers its exit
/// status, or 128 + signal. Errors: `io_failed`, `timed_out`.
result<int> run_in_folder(const std::string& command, const std::string& folder,
  const std::vector<std::string>& variables, std::chrono::nanoseconds limit);

} // namespace gristmill
