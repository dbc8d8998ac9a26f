#pragma once

#include "gpu/lease/table.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::test {

/// A small generator with a seed; its numbers are the same on every machine.
class chance {
public:
  explicit chance(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t below(uint32_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>((state_ >> 33) % n);
  }

private:
  uint64_t state_;
};

enum class world_verb : uint8_t {
  /// Letter `a` of those under way arrives, is lost, or is doubled.
  deliver = 0,
  lose,
  twice,
  /// Holder `a` asks; `b` chooses class, need and patience, `c` the candidate.
  ask,
  /// Time goes on by `a` milliseconds, for the executors by their own clocks.
  pass,
  /// What runs on GPU `a` ends; `b` chooses the outcome, `c` what the probe says.
  finish,
  /// The executor of GPU `a` has ended what was revoked; `b`: what the probe says.
  killed,
  /// The executor of GPU `a` renews; `b` seconds idle.
  renew,
  /// The executor of GPU `a` dies with its work and is started anew.
  crash,
  /// The node of GPU `a` is gone; or it is back.
  node,
  cancel,
  holder_down,
  drain,
  undrain,
  /// The broker is killed and started anew; the executors go on.
  restart,
  /// Holder `a` claims what runs on GPU `b`.
  claim,
  /// A person puts GPU `a` into quarantine.
  quarantine,
};

struct world_step {
  world_verb verb = world_verb::deliver;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;

  friend bool operator==(const world_step&, const world_step&) = default;
};

/// What happens, and in which world (number of GPUs and holders, policy, ttl, boot ids, skew).
struct world_script {
  uint64_t seed = 0;
  std::vector<world_step> steps;
};

/// One line a step, after a first line "world SEED".
std::string to_text(const world_script& script);
/// Errors: `invalid_input`, naming the line.
result<world_script> parse_script(std::string_view text);

/// Steps that a chance has drawn.
world_script random_script(uint64_t seed, uint32_t steps);

struct world_end {
  /// The first rule that was broken; empty when all held.
  std::string broken;
  /// Index of the step that broke it.
  size_t at = 0;
  uint64_t grants = 0;
  uint64_t scored = 0;
  uint64_t adopted = 0;
  uint64_t probes = 0;
  uint64_t restarts = 0;
};

/// Plays the script: one broker, executors and holders, joined by a net that delays, reorders,
/// loses and doubles. A model that knows nothing of the table's insides checks after each step that
/// no GPU has two valid tokens, that no stale or tainted result is scored, that nobody is
/// forgotten, and that GPUs that are lost, suspect, in quarantine or drained are lent to nobody.
/// With `calm` the weather then clears, and every GPU must be free and every wait over in the end.
world_end play(const world_script& script, bool calm);

/// A script with as few steps as delta debugging finds that still breaks a rule.
world_script shrink(const world_script& script, bool calm);

} // namespace gristmill::test
