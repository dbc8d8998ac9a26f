#pragma once

#include "messages/attempt.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace gristmill {

/// The best candidate of each problem and language on the run's device, and how many candidates
/// were tried for it: the more there were, the more a gain owes to chance.
struct incumbents {
  struct best_one {
    candidate_ref candidate;
    uint64_t objective_ns = 0;
    /// Candidates that ran to a time, this one included.
    uint32_t tried = 0;
  };
  std::map<std::pair<std::string, std::string>, best_one> all;

  best_one& of(const attempt_id& id) { return all[{id.problem, id.language}]; }
  /// Null when there is none.
  const best_one* find(const attempt_id& id) const {
    auto found = all.find({id.problem, id.language});
    return found == all.end() || found->second.candidate.hash.empty() ? nullptr : &found->second;
  }
};

} // namespace gristmill
