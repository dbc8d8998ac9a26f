#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gristmill {

/// So much a minute, and no more than a minute's worth at once. Counts in time instead of tokens
/// (the generic cell rate algorithm): `busy_until` moves on by the share of a minute that is taken,
/// and whoever would move it more than a minute ahead waits. Whole numbers, so that nothing drifts.
class token_bucket {
public:
  /// Absent: no limit.
  explicit token_bucket(std::optional<uint64_t> a_minute) : a_minute_(a_minute) {}

  /// When `amount` can be taken: `now` or later. An amount larger than a whole minute's waits for a
  /// full bucket.
  std::chrono::nanoseconds ready(uint64_t amount, std::chrono::nanoseconds now) const;
  void take(uint64_t amount, std::chrono::nanoseconds now);
  /// Gives back what was taken too much.
  void refund(uint64_t amount);
  /// Takes more than was thought; may go into debt.
  void charge(uint64_t amount, std::chrono::nanoseconds now) { take(amount, now); }

private:
  std::chrono::nanoseconds time_of(uint64_t amount) const;

  std::optional<uint64_t> a_minute_;
  std::chrono::nanoseconds busy_until_{0};
};

} // namespace gristmill
