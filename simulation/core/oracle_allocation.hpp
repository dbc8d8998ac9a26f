#pragma once

#include "planning/allocation/allocation.hpp"
#include "simulation/model/problem_curve.hpp"

#include <memory>
#include <vector>

namespace gristmill {

/// The hindsight oracle, a bound for every other rule: the next attempt goes to the problem where
/// it would bring the most, of those that can use one. It reads what nobody can know, `truth`,
/// which is the live state of all problems, changes before `on_finished` is told, and outlives the
/// oracle. Attempts in flight count as if they had brought what is expected of them.
///
/// An attempt costs the same on every problem of the model (its time is the agent's), so the most
/// for an attempt is also the most for a GPU second. O(log P) a call.
std::unique_ptr<allocation> make_oracle_allocation(
  const std::vector<problem_curve>& truth, const learning_law& law);

} // namespace gristmill
