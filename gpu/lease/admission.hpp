#pragma once

#include "messages/measure.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gristmill {

/// What an executor knows when somebody asks it to measure.
struct executor_state {
  /// A lease that has not ended here yet.
  struct open_lease {
    uint64_t token = 0;
    /// The newest part that was taken.
    uint32_t part = 0;
    /// That part was answered, and another may follow.
    bool awaits_part = false;
    /// Revoked, or on the ladder.
    bool is_ending = false;
    bool term_is_over = false;
  };

  /// In messages, such as "mock:h200#0".
  std::string name;
  uint32_t gpu = 0;
  /// Highest token seen in a request or a revocation.
  uint64_t fence = 0;
  std::optional<open_lease> lease;
  /// A probe outside any lease is going on.
  bool is_probed = false;
};

enum class admission : uint8_t {
  /// The first part of a lease: the fence rises to its token.
  first_part = 0,
  /// Another part of the lease that is open.
  next_part,
};

/// The rule by which every executor takes a measurement or refuses it: a token starts once, newer
/// than all before it; within a lease parts grow, one at a time. Errors: `invalid_input` for
/// another GPU's lease; `lease_expired` for a token or part that is too old, or a lease that ends;
/// `refused` while something else is going on.
result<admission> admit(const executor_state& executor, const measure_request& what);

/// The error that a holder gets when its lease no longer counts.
failure lease_over(uint64_t token, const std::string& reason);

} // namespace gristmill
