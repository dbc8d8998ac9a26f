#pragma once

#include "messages/event.hpp"
#include "messages/runtime.hpp"
#include "tests/support/small_run.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::test {

/// What a run with faults came to.
struct faulty_outcome {
  std::vector<event> events;
  /// One, unless the run hung.
  std::vector<run_ended> ends;
  uint32_t gpus = 0;
  uint64_t attempt_budget = 0;
  /// Runner children that were alive at the same time, at most.
  size_t runners_most = 0;
  bool journal_failed = false;
};

/// A whole run in virtual time: all real actors but the children, whose work is done by
/// `child_lines`. Everything is drawn from the seed: how many actors there are, how long children
/// take, which of them die, lie or never answer, which workers and services die, how slow the
/// journal is, who interrupts and when, and in which order actors that could run do run. Equal
/// seeds give equal runs.
///
/// `shared` gives problems and blobs; the run's own files lie in a folder of it that is emptied
/// first.
faulty_outcome run_with_faults(const small_run& shared, uint64_t seed);

} // namespace gristmill::test
