#pragma once

#include "gpu/device.hpp"
#include "gpu/toolchain/compile_input.hpp"
#include "messages/result.hpp"
#include "protocol/problem.hpp"
#include "protocol/program/program.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill::test {

/// Compiles a unit; how is the caller's choice.
using card_compiler = std::function<result<compile_output>(const compile_input&)>;

/// The problem that a card names: a built-in, or a folder of tests/corpus/strategy_cards. The test
/// fails when there is none.
problem problem_of(const strategy_card& card);

/// What came of the example of a card, at one shape.
struct card_outcome {
  /// Why it did not run to its end; empty when it did.
  std::string trouble;
  size_t elements = 0;
  size_t misses = 0;
  /// The first miss.
  std::string first_miss;
};

/// Runs a card's example on the mock H200 with inputs drawn as in a run, and compares every output
/// with the problem's reference. `sm_count` is what the plan is told; the mock device stays whole.
card_outcome run_card(const strategy_card& card, const axis_values& axes, uint32_t sm_count,
  const card_compiler& compiler);

} // namespace gristmill::test
