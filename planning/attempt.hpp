#pragma once

#include "messages/attempt.hpp"
#include "messages/compile.hpp"
#include "messages/lease.hpp"
#include "messages/measure.hpp"
#include "messages/plan.hpp"
#include "messages/prepare.hpp"
#include "messages/propose.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gristmill {

/// How long a worker waits for each answer before it gives the attempt up as `infrastructure`.
struct attempt_limits {
  std::chrono::nanoseconds propose = std::chrono::minutes{10};
  std::chrono::nanoseconds claim = std::chrono::seconds{30};
  std::chrono::nanoseconds compile = std::chrono::minutes{10};
  /// Patience of the lease request. The worker itself waits `lease_margin` longer, so that the
  /// broker's answer comes first.
  std::chrono::nanoseconds lease_wait = std::chrono::hours{1};
  std::chrono::nanoseconds lease_margin = std::chrono::seconds{30};
  /// Time since the start of the run at which nobody waits for a lease any more: the attempt ends
  /// as `abandoned`. What is measured then is measured to its end. 0: never.
  std::chrono::nanoseconds run_end{0};
  /// Beyond the term of the lease: start, clean-up and the way back.
  std::chrono::nanoseconds measure_margin = std::chrono::minutes{2};
  std::chrono::nanoseconds judge = std::chrono::minutes{10};
  /// The inputs and references of a promotion.
  std::chrono::nanoseconds draw = std::chrono::minutes{15};
  std::chrono::nanoseconds report = std::chrono::minutes{1};
  /// Told to the lease policy.
  std::chrono::nanoseconds estimated_hold = std::chrono::seconds{10};
  lease_class what = lease_class::timing;
  /// A proposer that keeps proposing what others try ends the attempt after this many refusals.
  uint32_t claims_max = 16;
  /// So often is a candidate measured again when a lease ended for a reason that is not its own
  /// (taken back, tainted, runner died); then the attempt ends as `infrastructure`.
  uint32_t repeats_max = 2;
  /// The loss of the machine that measured, or that held the outputs for the judge, is no repeat:
  /// machines come and go. Only what should not happen, the same candidate meeting one loss after
  /// the other, ends the attempt.
  uint32_t losses_max = 64;
  /// Told to the lease policy for the lease of a promotion.
  std::chrono::nanoseconds promotion_hold = std::chrono::seconds{30};
  /// A promotion that was overtaken is tried against the new incumbent. Each time somebody else
  /// has become faster, so this is only against what should not happen.
  uint32_t promotions_max = 16;
};

/// How the reason of a `lease_ended` begins when the machine of the GPU was lost, as against a GPU
/// that was taken out of service.
inline constexpr std::string_view machine_lost_reason = "node_lost: node '";

enum class attempt_state : uint8_t {
  idle = 0,
  proposing,
  claiming,
  compiling,
  waiting_lease,
  measuring,
  judging,
  /// The summary is on its way to the planner.
  reporting,
  /// It has screened well: inputs that nobody has seen are being made for its promotion.
  drawing,
  /// The incumbent is being compiled, to run against it. Then a lease is waited for again.
  compiling_rival,
};

std::string to_string(attempt_state state);

/// An answer together with the attempt that it was asked for.
template <class T>
struct answered {
  attempt_id attempt;
  T value;
};

/// Something that was asked for failed for a reason of ours (a dead actor, a full queue).
struct step_failed {
  attempt_id attempt;
  failure why;
  /// The state that asked; a failure that comes after it is over changes nothing. `idle` stands for
  /// "whatever the attempt does now".
  attempt_state during = attempt_state::idle;
  /// Of the lease that the measurement was asked for under; one of an earlier lease changes
  /// nothing.
  uint64_t token = 0;
};

/// A deadline may be over (`attempt::next_deadline`).
struct attempt_due {};

/// End the attempt now: the run is being aborted.
struct attempt_abandon {
  std::string reason;
};

/// The planner has the summary.
struct summary_stored {
  attempt_id attempt;
};

/// What can happen to a worker. `lease_granted` and `lease_ended` belong to an attempt by their
/// request number, `measurement` by its attempt and token.
using attempt_event = std::variant<assignment, answered<proposal>, answered<claim_reply>,
  answered<compiled_candidate>, lease_granted, lease_ended, measurement, answered<verdict>,
  answered<prepared_problem>, step_failed, attempt_due, attempt_abandon, summary_stored>;

/// What the worker has to send. `propose_request` goes to the proposer, `claim_request` and
/// `attempt_summary` to the planner, `compile_request` to the compiler, `lease_request` and
/// `lease_command` to the broker, `measure_request` to the GPU of its lease, `judge_request` and
/// `refused_request` to the scorer, `prepare_request` (of a draw) and `draw_over` to the oracle.
using attempt_command =
  std::variant<propose_request, claim_request, compile_request, lease_request, lease_command,
    measure_request, judge_request, refused_request, prepare_request, draw_over, attempt_summary>;

/// The mind of one worker: one attempt after the other, from the assignment to the summary. Exactly
/// one summary is sent for each assignment, whatever comes too late, twice or never. An answer that
/// is not awaited (of an older attempt, or of a step that is over) changes nothing; a lease granted
/// too late is given back at once.
///
/// A verdict that wants a promotion is not the end: a draw of inputs is asked for, the incumbent is
/// compiled, a fresh lease is asked for, both are measured under it, and the verdict on that
/// counts. What was drawn is given up (`draw_over`) however the attempt ends.
class attempt {
public:
  attempt(std::string worker, attempt_limits limits);

  /// The commands are to be carried out in order. An assignment while one is in work is refused by
  /// an immediate `infrastructure` summary of the new one.
  std::vector<attempt_command> step(const attempt_event& what, std::chrono::nanoseconds now);

  attempt_state state() const { return state_; }
  bool idle() const { return state_ == attempt_state::idle; }
  /// Nothing while idle.
  std::optional<std::chrono::nanoseconds> next_deadline() const;
  /// The attempt in work, or the last one; the history of its problem only until a candidate is
  /// chosen, for hundreds of workers would hold a copy each.
  const assignment& work() const { return work_; }

private:
  using commands = std::vector<attempt_command>;
  using instant = std::chrono::nanoseconds;

  commands on(const assignment& what, instant now);
  commands on(const answered<proposal>& what, instant now);
  commands on(const answered<claim_reply>& what, instant now);
  commands on(const answered<compiled_candidate>& what, instant now);
  commands on(const lease_granted& what, instant now);
  commands on(const lease_ended& what, instant now);
  commands on(const measurement& what, instant now);
  commands on(const answered<verdict>& what, instant now);
  commands on(const answered<prepared_problem>& what, instant now);
  commands on(const step_failed& what, instant now);
  commands on(const attempt_due& what, instant now);
  commands on(const attempt_abandon& what, instant now);
  commands on(const summary_stored& what, instant now);

  bool awaits(attempt_state state, const attempt_id& id) const {
    return state_ == state && work_.id == id;
  }
  bool is_before_measuring() const;
  void enter(attempt_state state, instant deadline);
  commands compile(instant now);
  commands promote(instant now);
  /// Of the draw in hand, if there is one.
  void give_up_draw(commands& out);
  commands ask_for_lease(instant now);
  /// Asks for another lease, or ends the attempt when there were too many.
  commands measure_again(std::string reason, instant now);
  /// The same after the loss of a machine, which is not counted as a repeat.
  commands measure_elsewhere(std::string reason, instant now);
  /// Gives back what is held and asks anew.
  commands change_lease(const std::string& reason, instant now);
  /// The broker will not have this candidate run (again): a verdict without a measurement.
  commands refused_by_broker(const std::string& reason, instant now);
  /// Gives back the lease in hand, if there is one.
  void give_back(commands& out, const std::string& reason, instant now);
  /// What the next worker on this problem should know of this attempt; one line.
  std::string note() const;
  /// Ends the attempt, giving back what it holds.
  commands finish(attempt_outcome outcome, std::string reason, instant now);

  std::string worker_;
  attempt_limits limits_;
  attempt_state state_ = attempt_state::idle;
  instant deadline_{0};
  assignment work_;
  candidate_ref candidate_;
  attempt_effort effort_ = attempt_effort::full;
  /// Of a probe; empty for all.
  std::vector<std::string> workloads_;
  std::vector<compiled_unit> units_;
  /// What the checks of its code found.
  std::vector<finding> compiled_findings_;
  lease lease_;
  instant granted_at_{0};
  uint64_t gpu_ns_ = 0;
  /// Request number of the newest lease; never used twice.
  uint64_t request_ = 0;
  uint32_t claims_ = 0;
  uint32_t repeats_ = 0;
  uint32_t losses_ = 0;
  verdict verdict_;
  /// The promotion in work; empty while the candidate is screened.
  std::string draw_;
  uint32_t promotions_ = 0;
  /// What it is compared with.
  maybe<rival> against_;
  /// What limits the candidate that was measured last, for the note to the next worker.
  std::string bound_;
};

} // namespace gristmill
