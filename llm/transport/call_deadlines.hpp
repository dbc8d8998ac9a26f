#pragma once

#include "llm/transport/http_port.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// When one call is to be given up, by the phase that it is in. Instants count from any origin.
class call_deadlines {
public:
  enum class phase : uint8_t {
    /// For a connection: nobody connects on its behalf, nothing of it is sent.
    waiting,
    connecting,
    /// Sent, and no event yet.
    sent,
    streaming,
    /// The reader has seen enough.
    finishing,
  };

  struct due {
    std::chrono::nanoseconds at{0};
    http_end how = http_end::complete;
  };

  call_deadlines(http_deadlines limits, std::chrono::nanoseconds waiting_max,
    std::chrono::nanoseconds finished_grace, std::chrono::nanoseconds now);

  /// Each is ignored when the call is past it already: a transfer that is tried again on another
  /// connection gets no more time.
  void connecting(std::chrono::nanoseconds now);
  void sent(std::chrono::nanoseconds now);
  /// Any byte of the answer's body.
  void byte(std::chrono::nanoseconds now);
  /// The first event, or the first byte of an answer that is no event stream.
  void event(std::chrono::nanoseconds now);
  void finished(std::chrono::nanoseconds now);

  phase where() const { return phase_; }
  bool was_sent() const { return phase_ >= phase::sent; }
  /// The earliest of what applies now; nothing when nothing is limited.
  std::optional<due> next() const;
  /// "no event within 60 s" and the like.
  std::string explain(http_end how) const;

private:
  http_deadlines limits_;
  std::chrono::nanoseconds waiting_max_;
  std::chrono::nanoseconds grace_;
  phase phase_ = phase::waiting;
  /// When the phase began.
  std::chrono::nanoseconds since_{0};
  std::chrono::nanoseconds sent_at_{0};
  std::chrono::nanoseconds byte_at_{0};
};

/// Which of many calls to look at, and when. An entry that is no longer true does no harm: whoever
/// is named looks at its own deadlines and arms again. So renewing an idle timer with each byte
/// costs nothing here.
class alarm_queue {
public:
  void arm(uint64_t id, std::chrono::nanoseconds at) { alarms_.push({at, id}); }
  /// The next one that is due, taken out.
  std::optional<uint64_t> take_due(std::chrono::nanoseconds now);
  std::optional<std::chrono::nanoseconds> next() const;
  size_t size() const { return alarms_.size(); }

private:
  using alarm = std::pair<std::chrono::nanoseconds, uint64_t>;
  std::priority_queue<alarm, std::vector<alarm>, std::greater<>> alarms_;
};

} // namespace gristmill
