#pragma once

#include "actors/child_front.hpp"
#include "actors/journal.hpp"
#include "actors/supervisor.hpp"
#include "cli/run_setup.hpp"

#include <memory>

namespace gristmill {

/// The real actors of a run; the only place that chooses between what is real and what is not.
/// `starter` outlives the actor system; null in a rehearsal. `sink` is taken by the journal.
/// `restored` is what a run goes on from; null for a new one.
run_factories real_actors(const run_setup& setup, run_context_ptr context,
  std::unique_ptr<event_sink> sink, child_starter* starter, uint32_t incarnation,
  std::shared_ptr<restored_run> restored = nullptr);

/// How the planner of this run decides.
portfolio_config planner_mind(const run_setup& setup);

/// First line of the log: what the run was asked to do, without paths.
event run_started_event(const run_setup& setup);

/// First line of another start: what holds now.
event run_resumed_event(const run_setup& setup, const restored_run& restored);

/// How many children of each kind run at once, and where they lie.
child_loop_limits child_limits(const run_setup& setup, unsigned cores);

} // namespace gristmill
