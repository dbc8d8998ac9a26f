#pragma once

#include "actors/interfaces.hpp"
#include "actors/virtual_time.hpp"
#include "simulation/core/timer_tree.hpp"
#include "simulation/core/world.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill {

/// Somebody who asks for leases, and hears what the broker has to say.
using lab_agent_actor = lease_holder_actor::extend<
  // What the broker answers to a request; the second only to those who ask, which nobody does.
  sig<void, lease_ticket>, sig<void, lease_ack>>;

/// The executor of a GPU.
using lab_executor_actor = gpu_executor_actor::extend<
  // What the broker answers to those who ask, which nobody does.
  sig<void, lease_ack>>;

/// What the actors of one simulated run share: the world that decides for them, and who is who. All
/// of them run in one thread and in virtual time, so what the world wants done is sent at once, in
/// the name of the actor whom it concerns.
///
/// The house outlives its actors. `end` must be called before the actor system ends.
class lab_house final : public world_port, public timer_source {
public:
  /// `journal` takes the broker's events; may be empty.
  lab_house(caf::actor_system& system, world& of, std::function<void(event&&)> journal);
  ~lab_house() override;

  /// Starts the actors, the broker last: `broker` makes it from the journal's handle.
  void open(const std::function<gpu_lease_actor(const journal_actor&)>& broker);
  /// The world's first word. Everything after it happens in virtual time.
  void start();
  /// Ends the actors; nothing that is still on its way reaches the world or the journal.
  void end();

  /// What ended an actor before its time; empty while all is well.
  const std::string& broken() const { return broken_; }

  // From the actors.
  world* open_world() { return over_ ? nullptr : &world_; }
  std::chrono::nanoseconds now() const { return clock_.now() - start_; }
  caf::actor_clock::time_point start_time() const { return start_; }
  void write(std::vector<event>& events);
  /// The broker has answered the oldest request of the agent that it had not answered: which?
  uint64_t answered(uint32_t agent);
  void has_ended(const std::string& who, const std::string& why);

  // From the clock.
  caf::actor_clock::time_point first() const override;
  void fire() override;

  // From the world.
  void set_timer(lab_entity entity, std::chrono::nanoseconds at) override;
  void request(uint32_t agent, const lease_request& what) override;
  void cancel(uint32_t agent, uint64_t request) override;
  void up(uint32_t gpu, const std::string& boot) override;
  void down(uint32_t gpu, const std::string& reason) override;
  void activated(uint32_t gpu, uint64_t token) override;
  void verified(uint32_t gpu, uint64_t token) override;
  void probed(uint32_t gpu, const probe_report& what) override;
  void release(
    uint32_t gpu, uint64_t token, const std::string& reason, lease_outcome outcome) override;

private:
  device_report report_of(uint32_t gpu, device_state state, uint64_t token) const;

  caf::actor_system& system_;
  virtual_scheduler& time_;
  virtual_clock& clock_;
  caf::actor_clock::time_point start_;
  world& world_;
  std::function<void(event&&)> journal_;
  bool over_ = false;
  std::string broken_;

  journal_actor log_;
  gpu_lease_actor broker_;
  std::vector<lab_agent_actor> agents_;
  std::vector<lab_executor_actor> executors_;
  timer_tree timers_;
  /// Requests of each agent that the broker has not answered yet, oldest first.
  std::vector<std::vector<uint64_t>> unanswered_;
  std::vector<std::string> models_;
  std::vector<std::string> boots_;
};

} // namespace gristmill
