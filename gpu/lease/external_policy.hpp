#pragma once

#include "gpu/lease/policy.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace gristmill {

struct external_policy_config {
  /// For `/bin/sh -c`; it speaks docs/lease-policy-protocol.md on its standard input and output.
  std::string command;
  /// For one answer, and for the greeting of a process that was just started.
  std::chrono::nanoseconds timeout = std::chrono::milliseconds{50};
  /// A process that ends, breaks the protocol or stays silent too often is started again this
  /// often, and then no more: fifo decides alone.
  int restarts_max = 3;
};

/// A policy in a process of its own. It decides; where it does not answer in time, or with a
/// waiter that does not fit, fifo decides instead and `take_failures` tells. No call takes longer
/// than the timeout. The only policy that does input and output; there is no copy of it.
///
/// The process is started with the first request.
std::unique_ptr<lease_policy> make_external_policy(external_policy_config config);

} // namespace gristmill
