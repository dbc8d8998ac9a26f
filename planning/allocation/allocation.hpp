#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// Names a problem within an allocation: dense, from 0. Of two problems that a rule holds equal the
/// one with the smaller index goes first.
using problem_index = uint32_t;

enum class allocation_rule : uint8_t {
  /// The fewest in flight, then the least use, then the fewest given.
  equal_share = 0,
  /// A slot of the equal floor of a rebalancing allocation.
  floor_share,
  /// The largest gain for the next unit of use, judged by the later half of what it had.
  rising,
  /// Every problem that can use an attempt is close to its floor, so all of them count again.
  all_gated,
};

/// Why a problem was picked: numbers only, so that picking costs no text.
struct allocation_reason {
  allocation_rule rule = allocation_rule::equal_share;
  uint32_t in_flight = 0;
  /// Attempts that the problem was given before.
  uint32_t given = 0;
  /// 0 where use is counted in attempts.
  uint64_t gpu_ns = 0;
  /// Of `rising`: gain in log speed-up over the later half of the attempts, and their number.
  double gain = 0;
  uint32_t window = 0;
  /// Problems that could use an attempt and were left out because of the gate.
  uint32_t gated = 0;
};

/// For the log.
std::string to_string(const allocation_reason& reason);

struct allocation_pick {
  problem_index problem = 0;
  allocation_reason why;
};

/// What an attempt brought.
struct attempt_gain {
  /// Time that leases were held.
  uint64_t gpu_ns = 0;
  /// ln(best time before / best time after); 0 when the best did not change.
  double log_gain = 0;
};

/// Decides which problem earns the next attempt. Pure and deterministic: no clock, no chance. Work
/// conserving: `pick` names a problem whenever one is eligible. Every call costs O(log P) in the
/// number of problems. Used by the planner of a run and by the simulator.
class allocation {
public:
  virtual ~allocation() = default;

  virtual std::string_view name() const = 0;

  /// A problem that can use another attempt, or cannot any more. At first none can.
  virtual void on_eligible(problem_index problem, bool eligible) = 0;
  /// An attempt was given out, whether `pick` named its problem or the caller knew better.
  virtual void on_given(problem_index problem) = 0;
  /// An attempt that was given out has ended, in whatever way.
  virtual void on_finished(problem_index problem, const attempt_gain& brought) = 0;
  /// ln(best time / floor) is known: how much could be gained at most. The floor may be a loose
  /// one.
  virtual void on_headroom(problem_index problem, double log_headroom) = 0;

  /// Who gets the next attempt; nothing when nobody can use one. Changes nothing.
  virtual std::optional<allocation_pick> pick(std::chrono::nanoseconds now) const = 0;
};

enum class allocation_kind : uint8_t { equal = 0, rebalance };

/// Which allocation, with its parameters.
struct allocation_settings {
  allocation_kind kind = allocation_kind::equal;
  /// Of `rebalance`: this share of the attempts goes by equal share, 0 to 1.
  double floor = 0.5;
  /// Of `rebalance`: a problem whose best is less than this far above its floor (in log speed-up)
  /// is left out while another can use the attempt. 0 switches the gate off.
  double gate = 0.05;
  /// Of `rebalance`: log gain that a problem is credited with in every window, so that one without
  /// any keeps a chance which falls with the number of its attempts.
  double prior = 0.1;
  /// Use is counted in attempts when true, in GPU time when false.
  bool by_attempts = false;
};

/// An allocation over `problems` problems.
std::unique_ptr<allocation> make_allocation(const allocation_settings& settings, uint32_t problems);

} // namespace gristmill
