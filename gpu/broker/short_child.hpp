#pragma once

#include "gpu/probe.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gristmill {

/// A program that answers with a little text and must do so in time. Never blocks: whoever owns it
/// calls `pump` when `descriptor` is readable and now and then.
class short_child {
public:
  /// Looked up in PATH; standard input is empty, standard error is dropped. A program that cannot
  /// be started is one that has answered nothing.
  explicit short_child(const std::vector<std::string>& command);
  short_child(const short_child&) = delete;
  short_child& operator=(const short_child&) = delete;
  /// Kills it. One that even SIGKILL does not end (a driver in trouble) is left behind, unwaited.
  ~short_child();

  int descriptor() const { return output_; }
  /// Reads what there is; true when it has ended and the answer is whole.
  bool pump();
  const probe_answer& answer() const { return answer_; }

private:
  pid_t pid_ = -1;
  int output_ = -1;
  probe_answer answer_;
};

/// Runs it to its end or to the limit, and waits.
probe_answer run_short_child(
  const std::vector<std::string>& command, std::chrono::milliseconds limit);

} // namespace gristmill
