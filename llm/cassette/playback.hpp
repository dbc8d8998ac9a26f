#pragma once

#include "llm/cassette/interaction.hpp"
#include "llm/transport/http_port.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// Plays recorded answers to a sink, from a thread of its own or, when told so, from its callers.
/// At once each answer is one report, in the order in which they were asked for; with a speed it is
/// one report for each moment at which events came.
class playback {
public:
  /// A speed of 0 plays at once; so does `from_caller`, with any speed.
  playback(double speed, bool from_caller, http_sink sink);
  /// Ends what is still playing as `cancelled`.
  ~playback();
  playback(const playback&) = delete;
  playback& operator=(const playback&) = delete;

  void play(uint64_t id, const interaction& what);
  void cancel(uint64_t id);
  /// What was recorded ends by itself.
  void finished(uint64_t) {}

private:
  using when = std::pair<std::chrono::steady_clock::time_point, uint64_t>;

  void run();
  std::vector<std::pair<std::chrono::nanoseconds, http_report>> reports_of(
    uint64_t id, const interaction& what) const;

  const double speed_;
  const bool from_caller_;
  const http_sink sink_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// By time, and in order of asking within one.
  std::map<when, http_report> due_;
  /// The entries of each call that has not ended.
  std::unordered_map<uint64_t, std::vector<when>> open_;
  uint64_t next_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace gristmill
