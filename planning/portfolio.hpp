#pragma once

#include "messages/attempt.hpp"
#include "messages/plan.hpp"
#include "messages/prepare.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

struct portfolio_config {
  uint64_t seed = 0;
  std::string device_model = "h200";
  std::string language = "cuda";
  /// No new attempt after this much time since the start of the run; 0 = no limit.
  std::chrono::nanoseconds wall_budget{0};
  /// Attempts that reach (or may still reach) a verdict, baselines not counted; 0 = no limit.
  uint64_t attempt_budget = 0;
  /// Sum of the times that leases were held, in nanoseconds; 0 = no limit.
  uint64_t gpu_budget_ns = 0;
  /// Equal share is of attempts when true, of GPU time when false. GPU time of a mock is time of
  /// this machine's processors, so sharing by it would make the order of attempts, and with it what
  /// a budget of attempts buys, differ from run to run.
  bool share_by_attempts = false;
  /// A problem that is still being prepared keeps its turn, and whoever asks waits for it. For runs
  /// with one worker, whose order of attempts must not depend on how fast the oracle is.
  bool wait_for_turn = false;
  /// False: only the given candidates are tried.
  bool search = true;
  /// How often a candidate whose attempt failed for a reason of ours is tried again.
  uint32_t infrastructure_retries = 2;
  uint32_t baseline_retries = 1;
  /// A problem with this many failures of ours in a row, times the largest number of attempts that
  /// it ever had in flight, is ended.
  uint32_t infrastructure_in_row_max = 6;
  /// Failed verdicts that are kept for a possible re-run; beyond it the oldest is forgotten.
  uint32_t failures_remembered_max = 4096;
  /// Victims of bad GPUs that wait for their re-run at the same time, over all problems.
  uint32_t reruns_waiting_max = 256;
};

/// A problem as the run was given it.
struct portfolio_problem {
  std::string name;
  /// Candidates given by file, tried in order before any search.
  std::vector<candidate_ref> planted;
};

enum class problem_state : uint8_t {
  /// Inputs and references are being made.
  preparing = 0,
  /// T_b is being measured.
  baseline,
  /// Candidates are being tried.
  open,
  finished,
};

std::string to_string(problem_state state);

/// Where a problem stands, for queries and the log.
struct problem_view {
  std::string name;
  problem_state state = problem_state::preparing;
  /// Why it is finished.
  std::string reason;
  uint32_t attempts_given = 0;
  uint32_t in_flight = 0;
  uint64_t gpu_ns = 0;
  /// Best passed candidate, the baseline included; empty hash for none.
  candidate_ref best;
  uint64_t best_ns = 0;
  f64 best_speedup;
};

enum class decision_kind : uint8_t {
  assigned = 0,
  /// Nothing now; ask again after the next `on_ready`, `on_finished`, `on_worker_lost` or
  /// `on_rerun`.
  idle,
  /// Nothing ever again.
  stop,
};

struct planner_decision {
  decision_kind kind = decision_kind::idle;
  assignment work;
  /// For the log: why this problem, why nothing, why the end.
  std::string reason;
};

/// What became of a summary.
struct planner_note {
  /// False for a summary of an attempt that is not (or no longer) in flight.
  bool accepted = false;
  /// The attempt's problem is finished by this summary.
  bool problem_finished = false;
  /// The passed candidate is the best of its problem so far.
  bool improved = false;
  /// The attempt whose verdict this one replaces, because its GPU was bad; empty for none.
  std::string rerun_of;
  /// For the log.
  std::string reason;
};

/// What became of a request to try a candidate again.
struct rerun_note {
  bool accepted = false;
  /// For the log.
  std::string reason;
};

/// The planner's mind: which problem the next attempt goes to, when a problem and when the run
/// ends. Equal share: among the problems that can use an attempt, the one with the fewest in
/// flight, then with the least GPU time (or not, `share_by_attempts`), then with the fewest
/// attempts given, then by name. Pure and deterministic.
///
/// A candidate whose failure was its GPU's gets one attempt more (`on_rerun`), before anything new
/// of its problem: the same candidate, of the same kind, without a proposal or a claim. It counts
/// in all budgets. Its verdict takes the place of the old one. A problem that is finished already
/// is opened for it; it goes on as a whole only when the victim was its baseline.
class portfolio {
public:
  /// Errors: `invalid_input` for a problem that is named twice or not at all, or no problem.
  static result<portfolio> make(portfolio_config config, std::vector<portfolio_problem> problems);

  /// Preparation has ended, well or not. A problem that is not preparing is left alone (false).
  bool on_ready(const prepared_problem& prepared);

  planner_decision next(const std::string& worker, std::chrono::nanoseconds now);

  /// A key is tried once. Refused when the key is known, tried by another attempt or empty, and
  /// when the attempt is not in flight; asking again for the same key by the same attempt is
  /// granted.
  claim_reply claim(const claim_request& request);

  planner_note on_finished(const attempt_summary& summary, std::chrono::nanoseconds now);

  /// The worker is gone: its attempts end as failures of ours. Returns the ended attempts.
  std::vector<attempt_id> on_worker_lost(const std::string& worker, std::chrono::nanoseconds now);

  /// A candidate failed only because of its GPU. Refused for an unknown problem or attempt, for a
  /// candidate that was named before (one re-run each), when too many wait, and when nothing more
  /// is given out. An attempt that is still in flight is followed up when its verdict is a failure.
  rerun_note on_rerun(const rerun_request& request, std::chrono::nanoseconds now);

  /// Gives out nothing more; the first reason stays.
  void drain(const std::string& reason);

  /// Nothing is in flight and nothing will be given out.
  bool done() const;
  /// Why nothing is given out any more; empty while the run goes on.
  const std::string& stop_reason() const { return stop_reason_; }

  planner_snapshot snapshot() const;
  /// In the order of names.
  std::vector<problem_view> problems() const;

private:
  /// A verdict that may turn out to be the GPU's fault.
  struct failed_trial {
    attempt_id id;
    attempt_kind kind = attempt_kind::search;
    candidate_ref candidate;
    std::string key;
  };

  struct problem {
    std::string name;
    problem_state state = problem_state::preparing;
    std::string reason;
    blob_ref graph;
    std::deque<candidate_ref> planted;
    /// Candidates to be tried again after a failure of ours.
    std::deque<std::pair<attempt_kind, candidate_ref>> retries;
    /// Victims of bad GPUs, to be tried once more.
    std::deque<failed_trial> reruns;
    /// Hashes that were named for a re-run; never a second time.
    std::set<std::string> rerun_candidates;
    /// It was finished, and is open again for `reruns` alone.
    bool only_reruns = false;
    std::vector<trial> history;
    std::set<std::string> known;
    /// Failures of ours by key.
    std::map<std::string, uint32_t> broken;
    std::set<uint32_t> in_flight;
    uint32_t in_flight_max = 1;
    /// Counts what a proposer did not know before: verdicts, and keys that are free again.
    uint64_t changes = 0;
    uint32_t next_ordinal = 0;
    uint32_t given = 0;
    uint32_t baseline_failures = 0;
    uint32_t failures_in_row = 0;
    uint64_t gpu_ns = 0;
    /// The proposer had nothing while others were in flight: asked again after one of them.
    bool dry = false;
    /// Set when the proposer had nothing although it knew everything; why.
    std::string exhausted;
    candidate_ref best;
    uint64_t best_ns = 0;
    f64 best_speedup;
  };

  struct flight {
    std::string worker;
    attempt_kind kind = attempt_kind::search;
    /// Claimed, or known from the start for a given candidate.
    std::string key;
    candidate_ref given;
    /// The failure that this attempt tries again; its id names no problem for every other attempt.
    failed_trial rerun_of;
    bool is_rerun() const { return !rerun_of.id.problem.empty(); }
    /// The candidate of this attempt that the broker calls a victim; empty for none.
    std::string victim;
    /// `problem::changes` when the attempt was given out.
    uint64_t changes_known = 0;
  };

  portfolio(portfolio_config config, std::vector<portfolio_problem> problems);

  bool can_use_attempt(const problem& p) const;
  void check_budgets(std::chrono::nanoseconds now);
  void check_finished(problem& p);
  void finish(problem& p, std::string reason);
  planner_decision assign(problem& p, const std::string& worker);
  std::vector<std::string> keys_in_flight(const problem& p, const attempt_id* except) const;
  flight take_flight(problem& p, const attempt_id& id);
  void on_judged(problem& p, const flight& f, const attempt_summary& summary, planner_note& note);
  void on_infrastructure(
    problem& p, const flight& f, const candidate_ref& candidate, const std::string& reason);
  void on_nothing_proposed(problem& p, const flight& f, const attempt_summary& summary);
  void put_verdict(problem& p, const flight& f, trial seen);
  void plan_rerun(problem& p, const failed_trial& failed);
  void remember_failure(failed_trial failed);
  size_t reruns_waiting() const;

  portfolio_config config_;
  std::map<std::string, problem> problems_;
  std::map<attempt_id, flight> flights_;
  /// Oldest first, over all problems.
  std::deque<failed_trial> failures_;
  uint64_t counted_attempts_ = 0;
  uint64_t finished_attempts_ = 0;
  uint32_t counted_in_flight_ = 0;
  uint64_t gpu_ns_ = 0;
  std::string stop_reason_;
};

} // namespace gristmill
