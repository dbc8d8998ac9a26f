#pragma once

#include "messages/lease.hpp"
#include "simulation/core/lab_result.hpp"
#include "simulation/core/problem_set.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>

namespace gristmill {

/// What the digest is made of: every step in the life of a lease or a GPU.
enum class lab_step : uint8_t {
  request = 1,
  grant,
  active,
  release,
  verified,
  cancel,
  refused,
  wait_end,
  lost,
  up,
  down,
  probed,
};

/// The books of a run: digest, areas, histograms, GPU time and the curve. All sums are of whole
/// nanoseconds, so they add up exactly.
class lab_books {
public:
  using time = std::chrono::nanoseconds;

  /// `warm_up` and `end` count from the start of the run.
  lab_books(time warm_up, time end, uint32_t curve_points);

  void step(lab_step kind, time now, uint32_t gpu, uint64_t token, uint32_t agent) {
    // One multiplication each, and a mix of all: a step that differs in anything differs in all
    // digests that follow.
    uint64_t word = static_cast<uint64_t>(now.count()) * 0x9e37'79b9'7f4a'7c15;
    word ^= token * 0xd6e8'feb8'6659'fd93;
    word ^= (static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(gpu) << 28 | agent)
      * 0xa076'1d64'78bd'642f;
    digest_ = mixed_word(digest_ ^ word) + 0x2545'f491'4f6c'dd1d;
    ++steps_;
  }

  /// Somebody waits from now on, or does not any more.
  void wait_begins(time now) {
    pass(now);
    ++waiting_;
    requests_ += now >= warm_up_;
  }
  void wait_ends(time now, time since) {
    pass(now);
    --waiting_;
    waited_ += measured(since, now).count();
  }
  /// A request is served, besides.
  void granted(time now, time since);
  /// The agent has its GPU no more. Returns the measured part of the hold.
  time hold_ends(time now, time since) {
    pass(now);
    --held_;
    const auto part = measured(since, now);
    held_sum_ += part.count();
    return part;
  }
  void thought(time from, time until) { thought_ += measured(from, until).count(); }

  /// A GPU was in a state for so long.
  void gpu_was(gpu_time what, time from, time until) {
    gpu_time_[static_cast<size_t>(what)] += measured(from, until).count();
  }
  /// A GPU is leased from now on, or is not any more: for the GPU hours of the curve.
  void gpu_taken(time now) {
    pass(now);
    ++taken_;
  }
  void gpu_given_back(time now) {
    pass(now);
    --taken_;
  }

  /// A lease has ended and its GPU is free again.
  void ended(time now, time granted_at, lease_outcome how);
  void lost(time now) { lost_ += now >= warm_up_; }
  void gave_up(time now) { given_up_ += now >= warm_up_; }
  void responded(time now, time asked_at);

  bool is_measured(time now) const { return now >= warm_up_; }
  /// The part of a stretch that is measured.
  time measured(time from, time until) const {
    from = from < warm_up_ ? warm_up_ : from;
    return until > from ? until - from : time{0};
  }

  /// There are problems, so there is a curve.
  void set_problems(const problem_set* problems);
  std::function<void(time)> on_wait;

  /// Everything but what only the world knows (names, shares, problems).
  lab_result close(time now);

private:
  /// Integrates up to now.
  void pass(time now) {
    if (now >= next_point_)
      add_points(now);
    integrate(now);
  }
  void integrate(time now) {
    if (now <= last_)
      return;
    const auto span = measured(last_, now).count();
    queue_area_ += static_cast<__int128>(span) * waiting_;
    system_area_ += static_cast<__int128>(span) * (waiting_ + held_);
    taken_area_ += static_cast<__int128>((now - last_).count()) * taken_;
    last_ = now;
  }
  void add_points(time now);

  time warm_up_;
  time end_;
  time last_{0};
  time next_point_;
  uint32_t points_;
  const problem_set* problems_ = nullptr;

  uint64_t digest_ = 0;
  uint64_t steps_ = 0;
  int64_t waiting_ = 0;
  int64_t held_ = 0;
  int64_t taken_ = 0;
  uint64_t requests_ = 0;
  uint64_t grants_ = 0;
  uint64_t ended_ = 0;
  uint64_t hangs_ = 0;
  uint64_t faults_ = 0;
  uint64_t lost_ = 0;
  uint64_t given_up_ = 0;
  uint64_t leases_ = 0;
  __int128 queue_area_ = 0;
  __int128 system_area_ = 0;
  __int128 taken_area_ = 0;
  __int128 waited_ = 0;
  __int128 held_sum_ = 0;
  __int128 thought_ = 0;
  std::array<__int128, static_cast<size_t>(gpu_time::count_)> gpu_time_{};
  time_histogram waits_;
  time_histogram holds_;
  time_histogram responses_;
  std::vector<outcome_point> curve_;
};

} // namespace gristmill
