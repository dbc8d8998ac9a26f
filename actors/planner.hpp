#pragma once

#include "actors/event_port.hpp"
#include "actors/interfaces.hpp"
#include "actors/verdict_book.hpp"
#include "planning/portfolio.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

struct planner_config {
  portfolio_config mind;
  std::vector<portfolio_problem> problems;
  oracle_actor oracle;
  scorer_actor scorer;
  supervisor_actor supervisor;
  event_port events;
  /// Problems that are prepared at the same time.
  uint32_t preparing_max = 2;
  /// Planted candidates that somebody waits for.
  uint32_t planters_max = 64;
  /// How often a preparation that failed for a reason of ours is tried again.
  uint32_t prepare_retries = 2;
  /// Only in a run whose workers live on several machines.
  std::shared_ptr<verdict_book> book;
};

/// Carries out what the portfolio decides: keeps the workers' requests until there is work, has the
/// problems prepared, watches the workers, tells the supervisor when nothing is left.
class planner final : public planner_actor::base {
public:
  planner(caf::actor_config& actor, planner_config config, portfolio mind);

  const char* name() const override { return "planner"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  struct waiting_worker {
    std::string worker;
    caf::typed_response_promise<work_reply> reply;
  };

  /// Somebody outside who wants to know what becomes of a candidate.
  struct waiting_plant {
    plant_request request;
    /// Of its last attempt; a failure of ours is followed by another.
    maybe<attempt_summary> last;
    caf::typed_response_promise<plant_reply> reply;
  };

  std::chrono::nanoseconds now();
  caf::result<plant_reply> plant(const plant_request& request);
  void withdraw(const plant_withdrawal& what);
  void close_planting(const plant_close& what);
  /// Keeps the summary for whoever planted its candidate.
  void remember_for_planter(const attempt_summary& summary);
  /// Why a candidate that was planted for the problem gets no attempt.
  std::string why_not(const std::string& problem) const;
  /// Answers whose candidate will not be tried (again).
  void answer_planters();
  void prepare_more();
  void prepare(const std::string& problem);
  void on_prepared(const prepared_problem& prepared);
  void on_prepare_failed(const std::string& problem, const failure& why);
  /// The problem waits for the oracle's successor; being asked for it was not its fault.
  void on_oracle_gone(const std::string& problem, const oracle_actor& asked);
  /// The machine of the worker is gone: what has its verdict counts, the rest is given out again.
  void interrupt_attempts(const std::string& worker);
  void watch_worker(const std::string& worker, const caf::strong_actor_ptr& handle);
  void on_summary(const attempt_summary& summary);
  void on_rerun(const rerun_request& request);
  /// Serves the waiting workers, notes what finished, tells the end.
  void serve();
  void note_finished_problems();

  planner_config config_;
  portfolio mind_;
  seam::monitors monitors_;
  std::vector<waiting_worker> waiting_;
  std::vector<waiting_plant> plants_;
  std::vector<std::string> to_prepare_;
  std::map<std::string, uint32_t> prepare_failures_;
  uint32_t preparing_ = 0;
  bool oracle_gone_ = false;
  bool end_told_ = false;
};

} // namespace gristmill
