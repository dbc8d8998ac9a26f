#pragma once

#include "actors/baseline_times.hpp"
#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_context.hpp"
#include "actors/verdict_book.hpp"
#include "scoring/incumbents.hpp"
#include "scoring/verdict.hpp"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

struct scorer_config {
  run_context_ptr context;
  /// Compares outputs with references, wherever they lie.
  judge_actor judge;
  event_port events;
  /// T_b by problem and workload, of a run that goes on from its log.
  baseline_times baselines;
  /// The same for the best candidates, and for how many were tried.
  incumbents best;
  /// Only in a run whose workers live on several machines.
  std::shared_ptr<verdict_book> book;
};

/// Judges: has outputs compared with references, then decides from the counts.
/// Owner of T_b, floors and the highest token and part of each GPU that it has seen: what comes
/// under these again or under older ones is refused, however it was delayed, doubled or overtaken;
/// so the parts of one lease are to be given here in their order. A measurement whose lease was
/// taken back or tainted does not come this far: its executor withholds it. A verdict is told only
/// after it is on disk. That of a probe speaks of its workloads alone, is kept as `probe_verdict`
/// and never becomes T_b.
///
/// In a run with promotions a candidate that screens better than the incumbent of its problem and
/// language gets no verdict yet (scoring/incumbents.hpp): the answer wants a promotion, and the log
/// says `screened`. The verdict is on the promotion.
///
/// A suspicion that the rules of integrity find (scoring/integrity.hpp) is answered once with
/// `lease_expired`, so that the candidate is measured again under another lease.
class scorer final : public scorer_actor::base {
public:
  scorer(caf::actor_config& actor, scorer_config config);

  const char* name() const override { return "scorer"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  using verdict_promise = caf::typed_response_promise<verdict>;

  caf::result<verdict> judge(const judge_request& request);
  void decide(const judge_request& request, const evaluation& judged, verdict_promise reply);
  void note_retrial(const judge_request& of, const decision& why);
  /// Stores the verdict, then tells it. `compared` is what a promotion found.
  void keep(const judge_request& of, verdict v, const evaluation& judged,
    const std::string& compared, verdict_promise reply);
  /// What the problem's workloads are held against, T_b as known now; all of them, or those of a
  /// probe.
  std::vector<workload_yardstick> yardsticks(
    const std::string& problem, const std::vector<std::string>& only) const;

  scorer_config config_;
  std::map<std::string, prepared_problem> prepared_;
  baseline_times baselines_;
  incumbents best_;
  /// Attempts that were measured again on a suspicion, until their verdict.
  std::set<attempt_id> tried_again_;
  /// Highest token and part seen, by GPU: nothing is judged under them again or under older ones.
  std::map<uint32_t, std::pair<uint64_t, uint32_t>> fences_;
};

} // namespace gristmill
