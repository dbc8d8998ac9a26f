#pragma once

#include "gpu/broker/broker_store.hpp"
#include "gpu/broker/process_tree.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gristmill {

/// Ends what is left of a lease whose keeper is gone or does not answer: SIGTERM, then SIGKILL,
/// until nothing of it is seen. In steps, so that the broker never waits for a process.
class lease_cleaner {
public:
  /// `holder_too`: the client's own process belongs to what must end (it works under the lease
  /// itself). `polite`: from SIGTERM to SIGKILL; 0 starts with SIGKILL.
  lease_cleaner(lease_record record, bool holder_too, std::chrono::nanoseconds polite,
    std::chrono::nanoseconds now);

  struct outcome {
    /// Passed: nothing is left. Could not: processes of another user could not be looked at.
    /// Failed: one does not end.
    probe_report found;
    uint32_t ended = 0;
  };
  /// Something when it is done.
  std::optional<outcome> step(std::chrono::nanoseconds now);
  std::chrono::nanoseconds due() const { return due_; }

private:
  lease_record record_;
  bool holder_too_;
  std::chrono::nanoseconds kill_at_;
  std::chrono::nanoseconds give_up_at_;
  std::chrono::nanoseconds due_;
  std::set<std::pair<pid_t, uint64_t>> terminated_;
};

} // namespace gristmill
