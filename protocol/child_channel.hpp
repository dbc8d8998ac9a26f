#pragma once

#include "messages/result.hpp"
#include "protocol/json_document.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gristmill {

/// What a line on descriptor 3 is about; contracts section 2.
enum class child_line_kind : uint8_t {
  /// First line: who the child is and what its jail gave it.
  hello = 0,
  /// It begins another part of its work.
  phase,
  /// It lives. Carries nothing.
  heartbeat,
  /// One result: a workload that ran, an output that was compared, a file that was made.
  sample,
  /// A workload came to grief; the child goes on.
  fault,
  /// Last line: it did all that it was asked to.
  done,
};

/// "hello", "phase", …: the value of the field `line`.
std::string_view to_string(child_line_kind kind);

/// One line, read. `body` is the object without the fields `line` and `nonce`.
struct child_line {
  child_line_kind kind = child_line_kind::heartbeat;
  ordered_json body;
};

/// No line of a child is longer than this, nor may all its lines together be.
constexpr size_t child_line_bytes_max = size_t{1} << 20;

/// Reads one line, without its line feed, in the parent. Children are not trusted: a line that is
/// too long, nested deeper than 16, no JSON object, of an unknown kind or with another nonce is an
/// `invalid_input` that says which.
result<child_line> parse_child_line(std::string_view line, std::string_view nonce);

/// The child's end of descriptor 3. Every function may be called by any thread; each writes one
/// line. A parent that has gone away ends the child by SIGPIPE.
class child_channel {
public:
  static constexpr int descriptor_default = 3;
  static constexpr std::chrono::milliseconds heartbeat_interval{250};

  /// Starts the heartbeat thread. `refused` when the descriptor is not open for writing: a child
  /// that nobody listens to does not work. Takes the descriptor over.
  static result<std::unique_ptr<child_channel>> open(
    std::string nonce, int descriptor = descriptor_default);

  child_channel(const child_channel&) = delete;
  child_channel& operator=(const child_channel&) = delete;
  ~child_channel();

  /// `network` is "none" or "shared", as the jail found it; `protections` says what else it could
  /// set up, such as "user,mount,…; by bubblewrap", or "limits; REASON".
  void hello(
    std::string_view program, std::string_view network, std::string_view protections = "not told");
  void phase(std::string_view name);
  /// `body` is an object; so below.
  void sample(const ordered_json& body);
  void fault(const ordered_json& body);
  /// After this nothing more is written, heartbeats included.
  void done(const ordered_json& body = ordered_json::object());

private:
  struct state;
  explicit child_channel(std::unique_ptr<state> state);
  std::unique_ptr<state> state_;
};

} // namespace gristmill
