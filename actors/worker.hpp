#pragma once

#include "actors/interfaces.hpp"
#include "planning/attempt.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace gristmill {

struct worker_config {
  std::string worker;
  attempt_limits limits;
  planner_actor planner;
  proposer_actor proposer;
  compiler_actor compiler;
  oracle_actor oracle;
  gpu_lease_actor lease;
  scorer_actor scorer;
  caf::actor_clock::time_point run_start{};
  /// Called with each assignment before it is begun; for fault tests, which throw from here.
  std::function<void(const assignment&)> on_assigned;
  /// Asked before each attempt: true ends the worker, which holds nothing then, with `node_lost`,
  /// to be placed on another machine. Empty: it stays.
  std::function<bool()> moves;
};

/// One agent: asks the planner for work and carries each attempt through its steps. What happens
/// next is decided by `attempt`; this actor sends what comes out and hands back what comes in.
class worker final : public worker_actor::base {
public:
  worker(caf::actor_config& actor, worker_config config);

  const char* name() const override { return "worker"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  std::chrono::nanoseconds now();
  void ask_for_work();
  void happened(const attempt_event& what);
  void arm_deadline();

  void carry_out(const propose_request& command);
  void carry_out(const claim_request& command);
  void carry_out(const compile_request& command);
  void carry_out(const lease_request& command);
  void carry_out(const lease_command& command);
  void carry_out(const measure_request& command);
  void carry_out(const judge_request& command);
  void carry_out(const refused_request& command);
  void carry_out(const prepare_request& command);
  void carry_out(const draw_over& command);
  void carry_out(const attempt_summary& command);

  /// Asks and feeds the answer, or the failure, back into the mind.
  template <class Reply, class Handle, class Request>
  void step_by(const Handle& whom, const Request& request, const attempt_id& id);
  /// The same for a peer that may be restarted: `whom` is a member that its successor replaces.
  template <class Reply, class Handle, class Request>
  void step_by_replaceable(const Handle& whom, const Request& request, const attempt_id& id);
  void failed(
    const attempt_id& id, attempt_state during, const caf::error& why, uint64_t token = 0);
  void successor_came(role which);

  worker_config config_;
  attempt mind_;
  /// Executor of the GPU that is leased right now.
  gpu_actor executor_;
  /// Found nobody to do it; sent again to the successor. The step's deadline goes on.
  std::optional<std::variant<propose_request, compile_request, prepare_request>> held_;
  uint64_t timer_ = 0;
  std::optional<std::chrono::nanoseconds> armed_for_;
};

} // namespace gristmill
