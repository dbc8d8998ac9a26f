#pragma once

#include "gpu/broker/client.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gristmill {

/// Leases of class `reference` for the children of `gristmill baseline`: from the broker that
/// listens already, else from one of our own that lives as long as this object.
class baseline_leases {
public:
  /// `gpus` as for `gristmill broker`. `socket` may be empty for the usual place. Errors:
  /// `io_failed`, `child_failed` when our own broker does not come up (with the end of its log).
  static result<baseline_leases> open(
    const std::string& gpus, const std::string& socket, const std::string& scratch);
  baseline_leases(baseline_leases&& other) noexcept;
  baseline_leases& operator=(baseline_leases&&) = delete;
  /// Ends our own broker.
  ~baseline_leases();

  /// Waits for its turn.
  result<broker_lease> acquire(const std::string& what, std::chrono::nanoseconds cap) const;

  const std::string& socket() const { return socket_; }
  /// From whom the leases are, for the provenance.
  std::string words() const;

private:
  baseline_leases(std::string socket, pid_t broker) : socket_(std::move(socket)), broker_(broker) {}

  std::string socket_;
  /// -1 when somebody else's broker answers.
  pid_t broker_;
};

} // namespace gristmill
