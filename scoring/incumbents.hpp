#pragma once

#include "messages/attempt.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace gristmill {

/// The best candidate of each problem and language on the run's device, and how many candidates
/// were tried for it: the more there were, the more a gain owes to chance.
class incumbents {
public:
  struct best_one {
    candidate_ref candidate;
    uint64_t objective_ns = 0;
    /// Candidates that ran to a time, this one included.
    uint32_t tried = 0;

    /// Of a verdict that passed, with a time, and does not leave the incumbent where it is: a
    /// promotion replaces it, a screening only when it is faster.
    void take(const candidate_ref& what, uint64_t ns, bool promoted);
  };

  best_one& of(const attempt_id& id) { return all_[{id.problem, id.language}]; }
  /// Null when there is none.
  const best_one* find(const attempt_id& id) const;

  /// What a verdict means for the incumbent. It speaks of all workloads, has passed, and has an
  /// objective.
  ///
  /// Where the run has promotions (`promotes`), a screening that beats the incumbent wants one; the
  /// baseline does not, because nobody chose it among others. A promotion is compared with the
  /// incumbent that it was measured with: the verdict then says whether that one stays, and is
  /// `infrastructure` where the blocks cannot be read. When another candidate has been promoted
  /// meanwhile, a faster one wants a promotion against that one.
  ///
  /// Answers what a promotion was compared with and found, one line; empty for a screening.
  std::string weigh(const judge_request& request, bool promotes, verdict& v);

private:
  void screen(const judge_request& request, verdict& v) const;
  std::string compare(const judge_request& request, verdict& v) const;

  std::map<std::pair<std::string, std::string>, best_one> all_;
};

} // namespace gristmill
