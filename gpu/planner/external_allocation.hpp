#pragma once

#include "planning/allocation/allocation.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace gristmill {

struct external_allocation_config {
  /// For `/bin/sh -c`; it speaks docs/planner-protocol.md on its standard input and output.
  std::string command;
  /// For one answer, and for the greeting of a process that was just started.
  std::chrono::nanoseconds timeout = std::chrono::milliseconds{50};
  /// A process that ends, breaks the protocol or stays silent too often is started again this
  /// often, and then no more.
  int restarts_max = 3;
};

/// A rule of the planner in a process of its own. Where it does not answer in time, or with a
/// problem that cannot use an attempt, equal share decides and the reason of the pick says why. No
/// call takes longer than the timeout. The process is started with the first pick. Asked twice
/// without an event in between, it gives the answer that it gave.
std::unique_ptr<allocation> make_external_allocation(
  external_allocation_config config, uint32_t problems, bool by_attempts);

/// Lets `allocation_from_text` know `external(cmd="…", timeout=50ms)`. Once, before it is used.
void install_external_planner();

} // namespace gristmill
