#pragma once

#include "actors/child_front.hpp"
#include "actors/journal.hpp"
#include "actors/supervisor.hpp"
#include "actors/worker_places.hpp"
#include "cli/run_setup.hpp"

#include <functional>
#include <memory>
#include <string>

namespace gristmill {

/// What a run to which nodes may come has more than one of one process.
struct cluster_start {
  /// Names the run, the same over all its starts.
  std::string run;
  /// `gristmill.run-terms/1`.
  std::string terms;
  /// Called from a thread of the actor system once there is a door to be published.
  std::function<void(const cluster_door_actor&)> on_door;
  /// For workers that live here because no node had room for them when they were started.
  std::shared_ptr<worker_places> places = std::make_shared<worker_places>();
};

/// A name that no other run has, also one with the same folder name or the same secret.
std::string cluster_name_of(const run_setup& setup);

/// What its nodes are told. Puts the files of problems into the run's blob store. Errors: those of
/// `make_run_terms`.
result<std::string> cluster_terms_of(const run_setup& setup, const std::string& run);

/// The real actors of a run; the only place that chooses between what is real and what is not.
/// `starter` outlives the actor system; null in a rehearsal. `sink` is taken by the journal.
/// `restored` is what a run goes on from; null for a new one. `cluster` is null for a run of one
/// process.
run_factories real_actors(const run_setup& setup, run_context_ptr context,
  std::unique_ptr<event_sink> sink, child_starter* starter, uint32_t incarnation,
  std::shared_ptr<restored_run> restored = nullptr, const cluster_start* cluster = nullptr);

/// How the planner of this run decides.
portfolio_config planner_mind(const run_setup& setup);

/// First line of the log: what the run was asked to do, without paths.
event run_started_event(const run_setup& setup);

/// First line of another start: what holds now.
event run_resumed_event(const run_setup& setup, const restored_run& restored);

/// How many children of each kind run at once, and where they lie.
child_loop_limits child_limits(const run_setup& setup, unsigned cores);

} // namespace gristmill
