#pragma once

#include "actors/journal.hpp"
#include "messages/plan.hpp"
#include "protocol/budget.hpp"
#include "report/run_table.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace gristmill {

/// What the one line at the bottom of a terminal tells.
struct live_state {
  planner_snapshot now;
  /// Leases that are held, and attempts that wait for one.
  size_t leases_in_use = 0;
  size_t leases_waiting = 0;
  budget limits;
  std::chrono::seconds elapsed{0};
  model_use models;
};

/// The line, no longer than `width` columns: what matters least is left out first, and what still
/// does not fit is cut. Plain ASCII without escape codes. Empty for a width of 0.
std::string live_line(const live_state& state, size_t width);

/// Tells a person on stderr how the run goes: a line for each baseline, improvement, failure and
/// finished problem, and the totals: on a terminal one live line at the bottom, elsewhere a plain
/// line each time. Escape codes are written to a terminal only. Safe from any thread.
class run_progress {
public:
  /// How often `show_totals` is worth calling: on a terminal, and elsewhere.
  static constexpr std::chrono::milliseconds live_period{250};
  static constexpr std::chrono::milliseconds plain_period{10'000};

  /// `quiet` leaves the single verdicts out, for rehearsals with thousands of them. `limits` are
  /// the run's, for what is left of them.
  run_progress(bool terminal, bool quiet, budget limits = {})
    : terminal_(terminal), quiet_(quiet), limits_(limits) {}

  std::chrono::milliseconds period() const { return terminal_ ? live_period : plain_period; }

  void on_event(const event& e);
  void show_totals(const planner_snapshot& now, std::chrono::seconds elapsed);
  /// Takes the live line away, for good or before somebody else writes to stderr.
  void clear_line();

private:
  void print(const std::string& line);
  void follow_lease(const event& e);

  bool terminal_;
  bool quiet_;
  budget limits_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> best_;
  model_use models_;
  /// Attempts that wait for a lease; tokens of leases that are held.
  std::set<std::string> waiting_;
  std::set<uint64_t> held_;
  bool line_open_ = false;
};

/// Whether stderr is a terminal that understands how to clear a line.
bool stderr_is_terminal();

/// Stores events in `inner` and shows them to `progress` once they are stored.
std::unique_ptr<event_sink> observed(
  std::unique_ptr<event_sink> inner, std::shared_ptr<run_progress> progress);

} // namespace gristmill
