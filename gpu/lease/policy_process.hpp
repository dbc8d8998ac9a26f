#pragma once

#include "messages/result.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gristmill {

/// A child process that speaks lines on its standard input and output. It has a process group of
/// its own, which is killed and reaped with this object. Nothing here waits longer than it is told.
class policy_process {
public:
  /// Runs `/bin/sh -c command`. Errors: `io_failed`.
  static result<std::unique_ptr<policy_process>> start(const std::string& command);

  policy_process(const policy_process&) = delete;
  policy_process& operator=(const policy_process&) = delete;
  ~policy_process();

  /// Takes the line over and writes what the process accepts at once. False when it does not read:
  /// it has ended, or more than 4 MiB wait for it.
  bool send(std::string_view line);

  enum class outcome : uint8_t { line = 0, late, ended, too_long };

  /// The next line, without its line feed, that comes until `deadline`; what waits to be written
  /// goes out meanwhile.
  outcome receive(std::string& line, std::chrono::steady_clock::time_point deadline);

private:
  policy_process(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  bool flush();

  pid_t pid_;
  int socket_;
  std::string out_;
  std::string in_;
  /// Of `in_`, known to hold no line feed.
  size_t scanned_ = 0;
};

} // namespace gristmill
