#pragma once

#include <cstdint>
#include <string>

namespace gristmill {

/// What can go wrong while the program works as designed. A mistake of ours is an `assert` instead.
enum class errc : uint8_t {
  /// What a person wrote (flag, file, field) does not hold; the command ends with exit code 2.
  invalid_input = 1,
  /// The named thing does not exist.
  not_found,
  /// The operating system refused a read or a write.
  io_failed,
  /// A bounded queue is full; ask again later.
  queue_full,
  /// The token is older than the newest one seen for its GPU.
  lease_expired,
  /// A child ended without its `done` line: infrastructure, not the candidate.
  child_failed,
  /// A deadline passed.
  timed_out,
  /// Well formed, but outside what this part can do; the text says what.
  unsupported,
  /// Well formed and possible, but against a rule (integrity, limits).
  refused,
  /// The run is ending.
  shutting_down,
  /// The kernel did something that a GPU would fault on, or worse, hide.
  device_fault,
  /// A budget (money, tokens, calls, GPU time) does not hold what was asked for.
  budget_exhausted,
  /// A provider of models refuses us for good: key, quota, unknown model.
  provider_refused,
  /// The machine that was to answer is gone or cannot be reached: nobody's fault, to be asked of
  /// another one. Counts against no limit.
  node_lost,
};

std::string to_string(errc code);

} // namespace gristmill
