#pragma once

#include "gpu/lease/policy.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace gristmill {

/// What a policy is told, added up: books of the queue that the engine does not keep itself, so
/// that its own can be compared with them. Waits and holds count by when they were granted, from
/// `from` on; areas from `from` on.
class queue_watch {
public:
  struct sums {
    uint64_t grants = 0;
    /// Of grants after `from`.
    uint64_t measured = 0;
    std::chrono::nanoseconds waited{0};
    /// Of leases that have ended.
    std::chrono::nanoseconds held{0};
    std::chrono::nanoseconds longest_held{0};
  };

  queue_watch(uint32_t gpus, std::chrono::nanoseconds from) : gpus_(gpus), from_(from) {}

  /// `policy` with the watch in front of it. The watch must outlive it.
  std::unique_ptr<lease_policy> before(std::unique_ptr<lease_policy> policy);

  /// Up to the end of the run; call it once.
  void close(std::chrono::nanoseconds end) { advance(end); }

  const sums& of(lease_class what) const { return by_class_.at(static_cast<size_t>(what)); }
  const std::map<std::string, sums>& by_problem() const { return by_problem_; }
  /// Sum over the ended leases of the class of when they ended.
  double ends_s(lease_class what) const { return ends_s_.at(static_cast<size_t>(what)); }
  /// Integral of the number that waits.
  double waiting_area_s() const { return waiting_area_s_; }
  /// Time that a GPU was free while somebody waited, once for each such pair.
  double idle_s() const { return idle_s_; }

  /// Called after every release, with all books up to date.
  std::function<void(const queue_watch&)> on_release;

private:
  class watched;

  void advance(std::chrono::nanoseconds now);

  uint32_t gpus_;
  std::chrono::nanoseconds from_;
  std::chrono::nanoseconds newest_{0};
  uint32_t held_ = 0;
  std::map<uint64_t, waiter> waiting_;
  std::map<uint64_t, waiter> leased_;
  std::array<sums, 5> by_class_{};
  std::map<std::string, sums> by_problem_;
  std::array<double, 5> ends_s_{};
  double waiting_area_s_ = 0;
  double idle_s_ = 0;
};

} // namespace gristmill
