#pragma once

#include "messages/attempt.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// What the searches of a run have found out about problems, for those of equal structure
/// (`structure_of`): the keys of their best points. Deterministic; no part of it depends on the
/// order in which it learned.
class search_memory {
public:
  /// Points kept of each problem.
  static constexpr size_t points_max = 3;

  /// Takes the best passed full trials of a problem in the place of what was known of it.
  void learn(
    const std::string& structure, const std::string& problem, const trial_history& history);

  /// Keys of the best points of the other problems with that structure: the best of each first, in
  /// the order of names; each key once.
  std::vector<std::string> relatives(
    const std::string& structure, const std::string& problem) const;

private:
  /// By structure, then by name of the problem: keys, best first.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> best_;
};

} // namespace gristmill
