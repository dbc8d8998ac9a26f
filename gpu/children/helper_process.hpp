#pragma once

#include "messages/result.hpp"
#include "protocol/child_channel.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// How a helper of a child ended.
struct helper_end {
  enum class how : uint8_t {
    /// It said `done`, and exited.
    done = 0,
    /// It exited or was killed without `done`.
    no_done,
    /// It was killed: it took too long, or said nothing for too long, or broke the protocol.
    deadline,
    silent,
    protocol_error,
  };
  how end = how::no_done;
  /// Exit status, or 128 + signal.
  int status = 0;
  /// Its lines without heartbeats.
  std::vector<std::string> lines;
};

/// In words, for a reason.
std::string describe(const helper_end& ended);

struct helper_limits {
  std::chrono::nanoseconds deadline{0};
  /// Killed when no line came for so long.
  std::chrono::nanoseconds silence = std::chrono::seconds{20};
};

/// Runs one helper of this child to its end: our own program on a job directory of its own, through
/// `gristmill-jail --nested`, so that it stays in our group and within our limits and dies with us.
/// It writes the lines of descriptor 3 on its standard output. Returns when it has gone, so that
/// two helpers never have a context at once. Fails with `io_failed` when it cannot be started.
///
/// `heard` gets each line as it comes, heartbeats excepted.
using hear_line = std::function<void(child_line_kind kind, const std::string& line)>;
result<helper_end> run_helper(const std::string& job_folder, const std::string& nonce,
  const helper_limits& limits, const hear_line& heard);

/// The word on the command line by which a program of ours knows that it is a helper.
constexpr const char* helper_option = "--helper";

/// The helper's side, before anything else: its standard output becomes descriptor 3, and what it
/// prints goes to its standard error.
result<void> become_helper();

} // namespace gristmill
