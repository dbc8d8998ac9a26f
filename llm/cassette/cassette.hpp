#pragma once

#include "llm/transport/http_port.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// Makes the port that really sends, with the sink it is to call: what a recorder stands before.
using http_port_factory = std::function<std::unique_ptr<http_port>(http_sink)>;

struct recording_options {
  std::filesystem::path file;
  /// Fields of a JSON body that two equal requests may differ in, at its top level. They are
  /// neither compared nor written.
  std::vector<std::string> volatile_fields = default_volatile_fields();
  /// Environment variables with secrets, besides those that the calls name: their values are
  /// blacked out wherever they appear.
  std::vector<std::string> secret_environment;
  /// Of `make_append_port`: whether what the cassette knows is answered from it. If not, everything
  /// is sent, and counted on from what is there: then a replay of the file goes through both runs.
  bool answer_known = true;
  /// Time for the offsets, from any origin; empty for the steady clock. With an injected one, equal
  /// conversations make equal files.
  std::function<std::chrono::nanoseconds()> now;
  /// The file cannot be written any more, with the reason; called once, from a thread of the port.
  /// Calls go on, unrecorded. Must not wait, nor call the port.
  std::function<void(std::string)> on_failure;

  static std::vector<std::string> default_volatile_fields();
};

struct replay_options {
  std::filesystem::path file;
  /// As it was when the file was recorded.
  std::vector<std::string> volatile_fields = recording_options::default_volatile_fields();
  std::vector<std::string> secret_environment;
  /// Recorded times are divided by this, 0.01 to 1e6; 0 delivers at once.
  double speed = 0;
  /// Reports come from within `start` instead of from a thread, at once: for tests whose actors
  /// have no threads.
  bool from_caller = false;
  /// A request that was never recorded, with the text of its report's `why`: names the file and
  /// shows the nearest recorded request as a short diff. The run must end with it. Called before
  /// that report; must not wait.
  std::function<void(std::string)> on_miss;
};

/// Every `why` of a miss begins with this; it ends as `not_sent` with status 0.
inline constexpr const char* cassette_miss = "not in the cassette";

/// Writes each call that ends, with its answer, to a new cassette: docs/model-transport.md has the
/// format. Keys are blacked out in URLs, headers and bodies, by value and by form. `invalid_input`
/// when the file exists and is not empty, `io_failed` when it cannot be made.
result<std::unique_ptr<http_port>> make_recording_port(
  recording_options options, const http_port_factory& inner, http_sink sink);

/// Answers from a cassette and never sends anything. The n-th call with a request gets the n-th
/// recorded answer to that request, whatever other calls there are. `not_found`, `io_failed`, or
/// `invalid_input` naming the line for a file that is no cassette; a torn last line is left out.
result<std::unique_ptr<http_port>> make_replay_port(replay_options options, http_sink sink);

/// Both: what the cassette knows is answered from it at once (except calls that were cancelled or
/// never sent), everything else is sent and appended. The file need not exist; a torn last line is
/// cut off it. Never a miss.
result<std::unique_ptr<http_port>> make_append_port(
  recording_options options, const http_port_factory& inner, http_sink sink);

} // namespace gristmill
