#pragma once

#include "messages/lease.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace gristmill::test {

/// The device side of one GPU. It runs one token at a time and never one that is not newer than
/// its fence; what comes from a start of its own that is over does not reach it.
struct executor {
  bool alive = false;
  uint32_t instance = 0;
  uint32_t boot = 0;
  uint64_t running = 0;
  uint64_t fence = 0;
  uint64_t dying_for = 0;
  /// By its own clock, which is slow or fast.
  std::chrono::nanoseconds clock{0};
  std::chrono::nanoseconds started{0};
  std::chrono::nanoseconds term{0};
  /// Of what runs: to tell the next broker.
  lease_request request;
};

enum class letter_kind : uint8_t {
  grant,
  measure,
  revoke,
  probe,
  up,
  down,
  active,
  ended,
  verified,
  holding,
  probed,
  release,
  stored,
};

struct letter {
  letter_kind kind = letter_kind::grant;
  uint32_t gpu = 0;
  uint64_t token = 0;
  /// Start of the executor that it comes from or goes to.
  uint32_t instance = 0;
  uint32_t boot = 0;
  lease_outcome outcome = lease_outcome::fine;
  probe_outcome probe = probe_outcome::passed;
  std::chrono::nanoseconds time{0};
  std::shared_ptr<const lease_request> request{};
};

inline bool to_the_broker(letter_kind kind) {
  return kind >= letter_kind::up;
}

/// What must be true of one GPU, by what the table has said and been told.
struct gpu_truth {
  /// Newest token ever granted, and newest stored reservation: both outlive the broker.
  uint64_t newest = 0;
  uint64_t stored = 0;
  /// The token that may run now; 0 for none.
  uint64_t valid = 0;
  uint64_t valid_holder = 0;
  uint64_t valid_request = 0;
  std::string valid_candidate;
  /// Released in time; its result counts if the probe passes.
  uint64_t to_score = 0;
  uint64_t scored = 0;
  /// What the broker has been told.
  bool up = false;
  bool heard = false;
  uint32_t instance = 0;
  uint32_t last_boot = 0;
  bool fit = true;
  bool drained = false;
  bool quarantined = false;
};

} // namespace gristmill::test
