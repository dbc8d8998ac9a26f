#pragma once

#include "simulation/core/incident_plan.hpp"
#include "simulation/core/lab_books.hpp"
#include "simulation/core/problem_set.hpp"
#include "simulation/core/world.hpp"
#include "simulation/model/gpu_places.hpp"
#include "simulation/model/time_sampler.hpp"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// The world of a scenario. lab_world.cpp has its making, timers and end; lab_agents.cpp who asks
/// for GPUs; lab_executors.cpp what GPUs do.
class lab_world final : public world {
public:
  using time = std::chrono::nanoseconds;

  lab_world(const scenario& what, world_options options, incident_plan incidents);

  uint32_t agent_count() const override { return agents_total_; }
  uint32_t gpu_count() const override { return static_cast<uint32_t>(gpus_.size()); }
  gpu_entry gpu(uint32_t gpu) const override;
  lab_entity entity_count() const override { return agents_total_ + gpu_count() + 1; }

  void start(world_port& port) override;
  void on_timer(lab_entity entity, time now, world_port& port) override;
  void on_granted(uint32_t agent, const lease_granted& what, time now, world_port& port) override;
  void on_ended(uint32_t agent, const lease_ended& what, time now, world_port& port) override;
  void on_revoke(const lease_revoke& what, time now, world_port& port) override;
  void on_probe(const probe_order& what, time now, world_port& port) override;
  void on_refused(uint32_t agent, uint64_t request, time now, world_port& port) override;
  lab_result finish(time now) override;
  const std::string& broken() const override { return broken_; }

private:
  enum class doing : uint8_t {
    /// Not begun yet, or no more to do.
    nothing = 0,
    thinking,
    /// For a place among the compilers.
    lining_up,
    compiling,
    waiting,
    holding,
  };

  /// Who asks for GPUs: an agent, somebody recorded, or a job.
  struct asker {
    doing what = doing::nothing;
    /// Its number among the agents of the port; all jobs share one.
    uint32_t agent = 0;
    uint32_t problem = 0;
    /// When the thinking (compilation included), the wait or the hold began.
    time since{0};
    /// Waits since its last lease that brought none.
    time waited_in_vain{0};
    /// Of the attempt: what it will take on a GPU of speed 1.
    time compile{0};
    time work{0};
    /// Of a recorded lease.
    time clean_up{0};
    lease_outcome outcome = lease_outcome::fine;
    lease_request asked;

    counter_stream think_draws;
    counter_stream compile_draws;
    counter_stream hold_draws;
    counter_stream fate_draws;
    time_sampler hold;
    double think_factor = 1;

    uint64_t leases = 0;
    time held{0};
    bool starved = false;

    /// Of a job: leases that it still needs, and when it came.
    uint64_t left = 0;
    time came{0};
    /// Of somebody recorded: the lease that comes next.
    size_t next = 0;
  };

  enum class executor_doing : uint8_t { down = 0, idle, working, cleaning };

  /// What runs on a GPU.
  struct executor {
    executor_doing what = executor_doing::down;
    uint32_t asker = 0;
    uint64_t request = 0;
    uint64_t token = 0;
    /// The newest token that it has reported as verified since its start.
    uint64_t done = 0;
    /// When it became idle, went down, or ended its work.
    time since{0};
    time granted_at{0};
    time launched_at{0};
    time compiled_at{0};
    lease_outcome outcome = lease_outcome::fine;
    /// The lease was taken back: nobody waits for what it measured.
    bool revoked = false;
    double speed = 1;
    uint32_t starts = 0;
  };

  // lab_world.cpp
  void make_agents();
  void make_recorded();
  /// When a timer of that entity fires that is set now for that long from now.
  time due(time now, time span, lab_entity entity) const;
  void on_incidents(time now, world_port& port);

  // lab_agents.cpp
  asker& asker_of(uint32_t index) {
    return index < askers_.size() ? askers_[index] : jobs_[index - askers_.size()];
  }
  /// The asker that a message to an agent of the port is for.
  uint32_t addressee(uint32_t agent, uint64_t request) const;
  void think(asker& a, time now, world_port& port);
  void think_is_over(asker& a, time now, world_port& port);
  void compile_is_over(asker& a, time now, world_port& port);
  void start_compiler(asker& a, time now, world_port& port);
  void draw_work(asker& a);
  void ask(asker& a, time now, world_port& port);
  void stop_waiting(asker& a, time now);
  void stop_holding(asker& a, time now);
  /// The attempt has brought no lease, or lost it.
  void attempt_failed(asker& a, uint64_t gpu_ns, time now, world_port& port);
  /// What comes after a lease, or a wait without one.
  void go_on(asker& a, time now, world_port& port);
  void follow_record(asker& a, time now, world_port& port);
  void ask_as_recorded(asker& a, time now, world_port& port);
  void job_comes(time now, world_port& port);
  void next_job(time now, world_port& port);
  void ask_again(asker& a, time now, world_port& port);
  void end_job(asker& a, time now, bool served);

  // lab_executors.cpp
  lab_entity entity_of(uint32_t gpu) const { return agents_total_ + gpu; }
  void start_work(
    uint32_t gpu, asker& a, uint32_t index, const lease_granted& what, time now, world_port& port);
  void end_work(uint32_t gpu, time now, world_port& port);
  void prove_free(uint32_t gpu, time now, world_port& port);
  void count_work(const executor& e, time until, bool in_vain);
  /// Its problem has had the GPU until then.
  void count_for_problem(const executor& e, time until);
  void gpu_goes(uint32_t gpu, time now, world_port& port);
  void gpu_comes(uint32_t gpu, time now, world_port& port);

  scenario what_;
  world_options options_;
  incident_plan incidents_;
  size_t next_incident_ = 0;
  lab_books books_;
  problem_set problems_;
  std::vector<std::string> problem_names_;
  std::vector<time> problem_time_;
  std::unique_ptr<allocation> planner_;
  time end_{0};
  /// Times are what they are, not whole quanta.
  bool exact_ = false;
  std::string broken_;

  uint32_t agents_total_ = 0;
  /// Agents or recorded ones.
  std::vector<asker> askers_;
  /// Jobs, used again and again; a request's lowest bits are the place here.
  std::deque<asker> jobs_;
  std::vector<uint32_t> free_jobs_;
  uint64_t jobs_seen_ = 0;
  uint32_t jobs_now_ = 0;
  counter_stream arrivals_;

  time_sampler call_;
  time_sampler compile_;
  bool compiles_on_lease_ = false;
  uint32_t compiling_ = 0;
  std::deque<uint32_t> compiler_line_;
  time launch_{0};
  time verify_{0};
  time hang_cleanup_{0};

  std::vector<gpu_place> gpu_places_;
  std::vector<executor> gpus_;
};

} // namespace gristmill
