#pragma once

#include "messages/event.hpp"
#include "messages/result.hpp"
#include "report/run_timeline.hpp"
#include "simulation/report/lab_plan.hpp"
#include "simulation/report/lab_text.hpp"

#include <span>
#include <string>

namespace gristmill {

/// What stands first in the journal of a simulated run: scenario, seed, configuration and program.
event lab_run_event(const lab_variant& variant, uint64_t seed, const lab_identity& who);

/// A trace in the format of Chrome's tracing, which Perfetto opens: one track a GPU, with what it
/// did, and a counter of the requests that wait. Times in microseconds since the start of the run.
/// Errors: `invalid_input` for events that are not those of a lease broker.
result<std::string> perfetto_trace(
  std::span<const event> events, const std::string& title, const lab_identity& who);

/// The event for a trace or a chart, where a simulated lease is called after its problem and agent.
event for_timeline(event e);

/// At most that many events are kept for a trace or a Gantt chart.
inline constexpr size_t window_events_max = 5'000'000;

} // namespace gristmill
