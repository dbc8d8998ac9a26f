#pragma once

#include "protocol/mcp/catalogue.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Revisions of the Model Context Protocol that the server speaks, newest first. The first has no
/// handshake: each request says its revision (specification 2026-07-28, "Versioning and
/// Compatibility"). The others begin with `initialize`.
const std::vector<std::string>& mcp_versions();

struct mcp_limits {
  /// Of one message, which is one line.
  size_t message_bytes = size_t{4} << 20;
  /// Brackets within brackets.
  size_t depth = 64;
  size_t id_bytes = 256;
  size_t calls_in_flight = 16;
};

/// A tool is to be called.
struct mcp_call {
  /// Names the call in this process; never used twice.
  uint64_t number = 0;
  std::string tool;
  ordered_json arguments;
  /// The client wants to hear how it goes on.
  bool wants_progress = false;
};

/// What a tool has come to.
struct mcp_outcome {
  /// For a model; at least a line.
  std::string text;
  /// For a program: an object. Null: there is none.
  ordered_json structured;
  /// The model can mend it: wrong arguments, a refusal, a problem that is not ready.
  bool is_error = false;
};

/// What follows from a message.
struct mcp_step {
  /// To be written, each as one line, in this order.
  std::vector<std::string> lines;
  std::vector<mcp_call> calls;
  /// Numbers of calls that nobody waits for any more.
  std::vector<uint64_t> cancelled;
};

/// One client of a Model Context Protocol server, over any stream of lines: JSON-RPC, both eras of
/// revisions, errors, cancellation, progress. Knows nothing of tools but their schemas. Pure: no
/// clock, no thread, no stream.
///
/// Errors of the protocol: -32700 for what is not JSON, -32600 for what is no request (too long,
/// too deep, a batch, an id of another type or in use, before `initialize`), -32601, -32602 (also
/// an unknown tool or resource), -32022 for another revision. A call whose arguments do not fit is
/// answered as a tool's error, so that the model at the other end can mend it.
class mcp_session {
public:
  explicit mcp_session(mcp_catalogue catalogue, mcp_limits limits = {});

  /// One message, without its line end. Empty lines are passed over.
  mcp_step on_line(std::string_view line);
  /// A line was longer than `mcp_limits::message_bytes`; what it was is not known.
  mcp_step on_too_long();

  /// The answer of a call; nothing when it was cancelled.
  std::vector<std::string> on_outcome(uint64_t call, const mcp_outcome& what);
  /// How far a call has come; `done` must grow. Nothing when the client did not ask for it.
  std::vector<std::string> on_progress(uint64_t call, double done, const std::string& message);

  size_t in_flight() const { return open_.size(); }
  const mcp_limits& limits() const { return limits_; }
  const mcp_catalogue& catalogue() const { return catalogue_; }

private:
  struct request {
    ordered_json id;
    std::string method;
    ordered_json params = ordered_json::object();
    bool modern = false;
  };
  struct open_call {
    ordered_json id;
    bool modern = false;
    ordered_json progress_token;
    double progress = -1;
  };

  void serve(const request& asked, mcp_step& out);
  void initialize(const request& asked, mcp_step& out);
  void call_tool(const request& asked, mcp_step& out);
  void notified(const std::string& method, const ordered_json& params, mcp_step& out);
  /// False when it was answered with an error.
  bool read_envelope(request& asked, mcp_step& out);
  ordered_json capabilities() const;
  ordered_json tool_list() const;
  ordered_json resource_list() const;
  ordered_json prompt_list() const;
  std::string reply(const ordered_json& id, ordered_json body, bool modern) const;
  bool is_in_flight(const ordered_json& id) const;

  mcp_catalogue catalogue_;
  mcp_limits limits_;
  std::map<uint64_t, open_call> open_;
  uint64_t next_call_ = 1;
  bool initialized_ = false;
};

} // namespace gristmill
