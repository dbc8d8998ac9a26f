#pragma once

#include "messages/attempt.hpp"
#include "messages/plan.hpp"
#include "messages/prepare.hpp"
#include "messages/result.hpp"
#include "planning/allocation/allocation.hpp"
#include "planning/gpu_budget.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
  /// Attempts that reach (or may still reach) a verdict, or for which the proposer had nothing;
  /// baselines not counted; 0 = no limit.
  uint64_t attempt_budget = 0;
  /// Sum of the times that leases were held, in nanoseconds; 0 = no limit.
  uint64_t gpu_budget_ns = 0;
  /// GPU time and attempts of each problem and of each worker (planning/gpu_budget.hpp); what they
  /// say of money, tokens and calls is not the planner's.
  budget_limits each_problem = {};
  budget_limits each_worker = {};
  /// What an attempt is thought to hold a GPU for, until it has ended.
  std::chrono::nanoseconds attempt_gpu_time = std::chrono::seconds{10};
  /// Equal share is of attempts when true, of GPU time when false. GPU time of a mock is time of
  /// this machine's processors, so sharing by it would make the order of attempts, and with it what
  /// a budget of attempts buys, differ from run to run.
  bool share_by_attempts = false;
  /// Which problem gets the next attempt; without one equal share.
  allocation_factory allocation = {};
  /// Notes of workers who left that a problem keeps, and bytes of each.
  uint32_t notes_max = 8;
  uint32_t note_bytes_max = 200;
  /// A problem that is still being prepared keeps its turn, and whoever asks waits for it. For runs
  /// with one worker, whose order of attempts must not depend on how fast the oracle is.
  bool wait_for_turn = false;
  /// False: only the given candidates are tried.
  bool search = true;
  /// Candidates may come from outside while the run goes on (`plant`): until `close_planting`,
  /// nothing ends for want of one.
  bool takes_plants = false;
  /// Candidates from outside that wait for their attempt, over all problems.
  uint32_t plants_waiting_max = 64;
  /// How often a candidate whose attempt failed for a reason of ours is tried again.
  uint32_t infrastructure_retries = 2;
  uint32_t baseline_retries = 1;
  /// A problem with this many failures of ours in a row, times the largest number of attempts that
  /// it ever had in flight, is ended.
  uint32_t infrastructure_in_row_max = 6;
  /// The same for attempts in a row for which the proposer had nothing.
  uint32_t unproposed_in_row_max = 12;
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
  /// The note that the worker left behind when it was moved; empty for none.
  std::string note_left;
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

/// What became of a candidate from outside.
struct plant_note {
  /// It has its place in line.
  bool accepted = false;
  /// It was tried before; `earlier` says what came of it.
  bool known = false;
  trial earlier;
  /// Why not, when neither.
  std::string reason;
};

/// The planner's mind: which problem the next attempt goes to (`allocation`), when a problem and
/// when the run ends. Pure and deterministic.
///
/// A worker that gets an attempt of another problem than its last has been moved: what it wrote
/// down last is kept for those who come to its old problem after it.
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

  /// A candidate from outside takes its place behind those that were given before, as if it had
  /// been given at the start. Refused when the run takes none (any more), for an unknown or
  /// finished problem, for a candidate that is in line or in flight, and when too many wait.
  plant_note plant(
    const std::string& problem, const candidate_ref& candidate, std::chrono::nanoseconds now);
  /// Takes a planted candidate out of the line; false when it is not (or no longer) there.
  bool withdraw(const std::string& problem, const std::string& candidate);
  /// Nobody plants any more: what is left is tried, and then the problems end.
  void close_planting();
  /// Whether the candidate is in flight, or waits for its (next) attempt and may still get it.
  bool has_open(const std::string& problem, const candidate_ref& candidate) const;

  /// Gives out nothing more; the first reason stays.
  void drain(const std::string& reason);

  /// Nothing is in flight and nothing will be given out.
  bool done() const;
  /// Why nothing would be given out at this time; empty when something would.
  const std::string& stop_reason_at(std::chrono::nanoseconds now);

  // Going on from a log (actors/run_history.hpp): the facts are told again in their order, with the
  // functions above and these.

  /// The attempt that the log says was given out, with the candidate that was given with it (or
  /// that has its verdict), if any. Errors: `invalid_input` when the portfolio cannot have given
  /// it: the log is not of this run.
  result<planner_decision> assign_again(const attempt_id& id, const std::string& worker,
    attempt_kind kind, const std::string& candidate);
  /// The attempt was cut off by the end of its process, after its leases were held for `gpu_ns`:
  /// what was given to it is given out again, and nothing failed.
  bool on_interrupted(const attempt_id& id, uint64_t gpu_ns, std::chrono::nanoseconds now);
  /// The log says that this candidate was taken from outside.
  void plant_again(const std::string& problem, const candidate_ref& candidate);
  /// A new process: problems that are not finished wait for their inputs (`on_ready`) once more.
  void on_resumed();
  /// The wall-clock budget counts from the start of the first process.
  void set_budgets(std::chrono::nanoseconds wall, uint64_t attempts, uint64_t gpu_ns);
  /// The number of the problem's next attempt; 0 for an unknown problem.
  uint32_t next_ordinal(const std::string& name) const;
  /// Attempts of the problem get this number or a larger one from now on.
  void reserve_ordinals(const std::string& name, uint32_t next);
  /// In order of their names: every attempt that is in flight, and those of one worker.
  std::vector<attempt_id> in_flight() const;
  std::vector<attempt_id> in_flight_of(const std::string& worker) const;
  /// What must not be lost, as text: trials, best, budgets used, what is to be tried again. Equal
  /// texts go on in the same way.
  std::string durable_text() const;

  /// Why nothing is given out any more; empty while the run goes on.
  const std::string& stop_reason() const { return stop_reason_; }

  planner_snapshot snapshot() const;
  /// In the order of names.
  std::vector<problem_view> problems() const;
  /// The problems that were finished since the last call.
  std::vector<problem_view> take_finished();

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
    problem_index index = 0;
    /// As the allocation was told.
    bool eligible = false;
    /// Resumed, and its inputs are not there yet.
    bool waits_for_data = false;
    /// What workers who left wrote down, oldest first.
    std::deque<std::string> notes;
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
    trial_history history;
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
    uint32_t unproposed_in_row = 0;
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

  /// What a worker did last.
  struct worker_memory {
    std::string problem;
    std::string note;
  };

  bool can_use_attempt(const problem& p) const;
  bool attempts_are_gone() const;
  // portfolio_shares.cpp: budgets of a problem and of a worker.
  bool share_holds(const problem& p) const;
  /// Finishes a problem whose own budget holds no attempt any more; true when it did.
  bool finish_spent(problem& p);
  /// Why this worker gets nothing ever again; empty while it may get something. When that is so of
  /// all workers, the run ends.
  std::string worker_is_spent(const std::string& worker);
  /// Tells the allocation whether the problem, or all of them, can use an attempt.
  void refresh(problem& p);
  void refresh_all();
  /// After an attempt of it has ended.
  void changed(problem& p);
  void move_worker(problem& to, const std::string& worker, planner_decision& out);
  problem_view view_of(const problem& p) const;
  void check_budgets(std::chrono::nanoseconds now);
  void check_finished(problem& p);
  void finish(problem& p, std::string reason);
  /// What an attempt of the problem is about now.
  flight next_flight(problem& p);
  /// The same, where the answer is known.
  flight flight_of(problem& p, attempt_kind kind, const std::string& candidate);
  planner_decision assign(problem& p, const std::string& worker, flight f);
  /// Whether `holds` is true of a key that is tried right now, or that waits to be tried.
  template <class Holds>
  bool any_in_flight(const problem& p, const attempt_id* except, Holds holds) const;
  std::vector<std::string> keys_in_flight(const problem& p, const attempt_id* except) const;
  flight take_flight(problem& p, const attempt_id& id);
  void on_judged(problem& p, const flight& f, const attempt_summary& summary, planner_note& note);
  void on_infrastructure(
    problem& p, const flight& f, const candidate_ref& candidate, const std::string& reason);
  void on_nothing_proposed(problem& p, const flight& f, const attempt_summary& summary);
  void on_unproposed(problem& p, const flight& f, const std::string& reason);
  void put_verdict(problem& p, const flight& f, trial seen);
  void plan_rerun(problem& p, const failed_trial& failed);
  void remember_failure(failed_trial failed);
  size_t reruns_waiting() const;

  portfolio_config config_;
  std::map<std::string, problem> problems_;
  /// By `problem::index`.
  std::vector<problem*> by_index_;
  std::unique_ptr<allocation> allocation_;
  std::map<std::string, attempt_id> attempt_of_worker_;
  std::map<std::string, worker_memory> workers_;
  std::vector<std::string> newly_finished_;
  gpu_budget shares_;
  /// Whoever has asked for work, and who of them has nothing left.
  std::set<std::string> workers_seen_;
  std::set<std::string> workers_spent_;
  /// What `refresh_all` has told.
  bool attempts_gone_told_ = false;
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
