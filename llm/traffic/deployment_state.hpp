#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/traffic/aimd_window.hpp"
#include "llm/traffic/circuit_breaker.hpp"
#include "llm/traffic/token_bucket.hpp"
#include "messages/llm.hpp"
#include "protocol/model_file.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace gristmill {

/// What stands between a call and a deployment.
enum class obstacle : uint8_t {
  none = 0,
  /// A place or tokens of this minute: worth waiting for.
  full,
  /// The server asked for a pause.
  paused,
  /// The breaker is open.
  broken,
  /// Not in this run any more.
  closed,
};

/// What is known about one deployment: its buckets, its window, its breaker, its pause.
class deployment_state {
public:
  explicit deployment_state(const model_deployment& what);

  struct verdict {
    obstacle what = obstacle::none;
    /// When to look again; 0: after the next answer.
    std::chrono::nanoseconds again{0};
  };
  verdict may_send(
    uint64_t input_tokens, uint64_t output_tokens, std::chrono::nanoseconds now) const;

  struct place {
    /// Of the window.
    uint64_t order = 0;
    /// The call looks whether the server works again.
    bool look = false;
  };
  place sent(uint64_t input_tokens, uint64_t output_tokens, std::chrono::nanoseconds now);
  /// The tokens that were really used, against what was taken at `sent`; to be called once.
  void ended(uint64_t input_taken, uint64_t output_taken, const llm_usage& usage,
    bool reached_server, std::chrono::nanoseconds now);

  void success();
  void throttled(const place& at, std::chrono::nanoseconds wait, std::chrono::nanoseconds now);
  /// True when the breaker opened.
  bool failed(const place& at, bool overload, std::chrono::nanoseconds now);
  /// The server answered, but with a no that says nothing about its health.
  void answered(const place& at);
  /// Nothing was learned.
  void unlearned(const place& at);
  void heed(const rate_limits& limits, std::chrono::nanoseconds now);
  void close(std::string why);

  const std::string& closed() const { return closed_; }
  std::chrono::nanoseconds paused_until() const { return paused_until_; }
  std::string paused_text(std::chrono::nanoseconds now) const;
  uint32_t in_flight() const { return in_flight_; }
  uint32_t window() const { return window_.size(); }

  uint64_t calls = 0;
  uint64_t retries = 0;
  uint64_t failures = 0;
  uint32_t config_failures = 0;

private:
  token_bucket requests_;
  token_bucket input_;
  token_bucket output_;
  aimd_window window_;
  circuit_breaker breaker_;
  std::chrono::nanoseconds paused_until_{0};
  uint32_t in_flight_ = 0;
  std::string closed_;
};

} // namespace gristmill
