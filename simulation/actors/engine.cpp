#include "simulation/actors/engine.hpp"

#include "actors/gpu_lease.hpp"
#include "actors/system_config.hpp"
#include "actors/virtual_time.hpp"
#include "simulation/actors/lab_house.hpp"

#include <utility>

namespace gristmill {

namespace {

/// Timers between two questions whether to stop.
constexpr uint64_t timers_at_a_time = 20'000;

/// An actor system whose time stands still until it is told to go on.
struct virtual_system {
  struct settings : caf::actor_system_config {
    settings() {
      configure(*this, 1);
      virtual_scheduler::install(*this);
    }
  };

  settings config;
  caf::actor_system system{config};
  virtual_scheduler& time = virtual_scheduler::of(system);
};

/// Ends the actors however the run ends; the system would wait for them for ever.
struct ending {
  lab_house& house;
  ~ending() { house.end(); }
};

} // namespace

result<lab_result> run_actors(const scenario& what, lab_options options) {
  auto made = world::make(what, std::move(options.world));
  if (!made)
    return pass(made);
  auto policy = policy_of(what, options);
  if (!policy)
    return pass(policy);
  auto& w = **made;

  virtual_system house_system;
  lab_house house{house_system.system, w, options.journal};
  ending at_the_end{house};
  house.open([&](const journal_actor& log) {
    gpu_lease_config settings;
    settings.table = table_config_for(what);
    settings.table.log_events = static_cast<bool>(options.journal);
    settings.policy = std::move(*policy);
    for (uint32_t gpu = 0; gpu < w.gpu_count(); ++gpu)
      settings.gpus.push_back(w.gpu(gpu));
    settings.events = event_port{log, house.start_time()};
    return house_system.system.spawn<gpu_lease>(std::move(settings));
  });
  house.start();

  auto duration = time_of(what.duration_s);
  for (bool done = false; !done;) {
    if (!house.broken().empty())
      return fail(errc::child_failed, "the simulation with actors: " + house.broken());
    if (!w.broken().empty())
      return fail(errc::refused, w.broken());
    if (options.stop && options.stop())
      return fail(errc::shutting_down, "the run was stopped");
    done = house_system.time.run_until(house.start_time() + duration, timers_at_a_time);
    if (options.progress)
      options.progress(
        duration.count() > 0 ? double(house.now().count()) / double(duration.count()) : 1);
  }
  if (!w.broken().empty())
    return fail(errc::refused, w.broken());
  return w.finish(duration);
}

} // namespace gristmill
