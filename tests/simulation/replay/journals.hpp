#pragma once

#include "messages/event.hpp"
#include "simulation/core/engine.hpp"
#include "simulation/replay/lease_trace.hpp"

#include <string>
#include <vector>

namespace gristmill::test {

/// Writes the lines of a journal by hand. Times are milliseconds.
class hand_journal {
public:
  hand_journal& head(const std::string& policy);
  hand_journal& up(const std::string& gpu, const std::string& model = {});
  hand_journal& request(int64_t ms, uint64_t ticket, const std::string& agent,
    const std::string& problem = "p", const std::string& more = {});
  hand_journal& grant(int64_t ms, uint64_t ticket, const std::string& agent, const std::string& gpu,
    uint64_t token, int64_t queued_ms, const std::string& problem = "p");
  hand_journal& release(int64_t ms, const std::string& gpu, uint64_t token);
  hand_journal& free(int64_t ms, const std::string& gpu, uint64_t token);
  hand_journal& wait_end(int64_t ms, uint64_t ticket, const std::string& agent, int64_t queued_ms);
  hand_journal& gpu(
    int64_t ms, const std::string& kind, const std::string& gpu, const std::string& reason = {});
  /// A lease from its request to the free GPU.
  hand_journal& add(event e);

  const std::vector<event>& events() const { return events_; }
  std::string text() const;
  /// Fails the test when a line is refused.
  lease_trace read() const;
  /// What is said of the first line that is refused; empty when none is.
  std::string complaint() const;

private:
  std::vector<event> events_;
};

/// Five agents of two problems on two GPUs, with holds that differ.
scenario small_scenario();
/// Runs it in `run_core` and reads its journal; the policy is the scenario's.
lease_trace simulate_trace(const scenario& what, uint64_t seed);

} // namespace gristmill::test
