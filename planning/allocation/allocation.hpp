#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
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
  /// A slot of the equal floor.
  floor_share,
  /// The largest gain for the next unit of use, judged by the later half of what it had.
  rising,
  /// Every problem that can use an attempt is close to its floor, so all of them count again.
  all_gated,
  /// The next one in the order of indices.
  round_robin,
  /// The largest recent gain for a unit of use.
  greedy,
  /// The largest upper bound of the gain for a unit of use.
  ucb,
  /// The highest rung of successive halving.
  asha,
  /// Successive halving waits for results that decide who goes on; equal share meanwhile.
  asha_waits,
  /// The largest true expected gain (simulation only).
  oracle,
  /// A rule that somebody registered.
  own,
  /// A registered rule named nobody, or somebody who cannot use an attempt; equal share instead.
  own_failed,
};

/// Why a problem was picked: numbers only, so that picking costs no text.
struct allocation_reason {
  allocation_rule rule = allocation_rule::equal_share;
  uint32_t in_flight = 0;
  /// Attempts that the problem was given before.
  uint32_t given = 0;
  /// 0 where use is counted in attempts.
  uint64_t gpu_ns = 0;
  /// Of `rising` and `asha`: gain in log speed-up over the last `window` attempts. Of `greedy`,
  /// `ucb` and `oracle`: for a unit of use (an attempt, or a GPU second). Of `own`: its score.
  double gain = 0;
  uint32_t window = 0;
  /// Problems that could use an attempt and were left out because of the gate.
  uint32_t gated = 0;
  /// Of `ucb`: what the bound adds to the gain.
  double bonus = 0;
  /// Of `asha`.
  uint32_t round = 0;
  uint32_t rung = 0;
  /// Of `own` and `own_failed`: the name that the rule was registered under. Of unlimited life.
  std::string_view label = {};
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
  /// ln(best time before / best time after); 0 when the best did not change. What is negative or no
  /// number counts as 0.
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

/// Makes an allocation over `problems` problems. Use is counted in attempts when `by_attempts`,
/// else in GPU time. `allocation_from_text` (allocation_text.hpp) gives one.
using allocation_factory =
  std::function<std::unique_ptr<allocation>(uint32_t problems, bool by_attempts)>;

} // namespace gristmill
