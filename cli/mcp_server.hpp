#pragma once

#include "cli/mcp_tools.hpp"
#include "protocol/mcp/session.hpp"

#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gristmill {

/// One client on two descriptors: reads lines, runs each call of a tool in a thread of its own (at
/// most `mcp_limits::calls_in_flight`), writes answers. Nothing but the protocol is written to
/// `out`.
class mcp_server {
public:
  /// How a client's session came to its end.
  enum class ending : uint8_t {
    /// No more input, and every call is answered.
    input_closed = 0,
    /// Nobody reads the answers any more.
    output_closed,
    interrupted,
  };

  mcp_server(mcp_session session, mcp_tools& tools, int in, int out);
  /// Cancels what is in flight and waits for it.
  ~mcp_server();
  mcp_server(const mcp_server&) = delete;
  mcp_server& operator=(const mcp_server&) = delete;

  /// Serves until the end of the input, or until one of `interrupts` comes, which the caller has
  /// blocked. After the end of the input the calls in flight are still answered.
  ending serve(const sigset_t& interrupts);

private:
  struct running_call {
    uint64_t number = 0;
    call_control control;
    std::thread thread;
  };
  /// What the threads of calls have to say.
  struct word {
    uint64_t call = 0;
    bool is_outcome = false;
    mcp_outcome outcome;
    double done = 0;
    std::string message;
  };

  void take_input(std::string_view bytes);
  void follow(const mcp_step& step);
  void start(const mcp_call& call);
  void say(word what);
  void take_words();
  void queue(const std::vector<std::string>& lines);
  /// False when the other end is gone.
  bool write_some();

  mcp_session session_;
  mcp_tools& tools_;
  int in_;
  int out_;
  int wake_ = -1;
  std::string partial_;
  bool skipping_ = false;
  /// Not written yet. While much of it waits nothing more is read.
  std::string unwritten_;
  std::list<running_call> calls_;
  std::mutex mutex_;
  std::deque<word> words_;
};

} // namespace gristmill
