#pragma once

#include "actors/journal.hpp"
#include "messages/plan.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace gristmill {

/// Tells a person on stderr how the run goes: a line for each baseline, improvement, failure and
/// finished problem, and a line of totals, which on a terminal stays at the bottom. Safe from any
/// thread.
class run_progress {
public:
  /// `quiet` leaves the single verdicts out, for rehearsals with thousands of them.
  run_progress(bool terminal, bool quiet) : terminal_(terminal), quiet_(quiet) {}

  void on_event(const event& e);
  void show_totals(const planner_snapshot& now, std::chrono::seconds elapsed);
  void clear_line();

private:
  void print(const std::string& line);

  bool terminal_;
  bool quiet_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> best_;
  bool line_open_ = false;
};

/// Stores events in `inner` and shows them to `progress` once they are stored.
std::unique_ptr<event_sink> observed(
  std::unique_ptr<event_sink> inner, std::shared_ptr<run_progress> progress);

} // namespace gristmill
