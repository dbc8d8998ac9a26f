#pragma once

#include "planning/nested_budget.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gristmill {

/// GPU time and attempts of each problem and of each agent, for whoever gives out attempts (the
/// portfolio). The run's own limits stay in `portfolio_config`.
///
/// An attempt reserves the time that it is thought to hold a GPU, or the smallest limit where that
/// is less, and one attempt; it is settled with what its leases were really held. GPU time is no
/// money: an attempt that holds its lease longer is not ended for it, so a budget may be overdrawn
/// by what is in flight when it runs out, as that of the run.
///
/// Keys are `to_string(attempt_id)`; the same key twice, or one that is not open, changes nothing.
class gpu_budget {
public:
  gpu_budget() = default;
  gpu_budget(
    budget_limits each_problem, budget_limits each_agent, std::chrono::nanoseconds expected);

  /// Without limits nothing is counted and nothing refused.
  bool limits_anything() const { return limited_; }
  std::optional<budget_refusal> would_refuse(
    const std::string& problem, const std::string& agent) const;
  /// False when it would be refused, or the key is open already.
  bool begin(const std::string& attempt, const std::string& problem, const std::string& agent);
  /// Also for an attempt that was given out by a log: it is counted although nothing was reserved.
  void begin_again(
    const std::string& attempt, const std::string& problem, const std::string& agent);
  /// After this its leases were held for so long, all together. `counts`: it used one of the
  /// attempts of its budgets.
  bool end(const std::string& attempt, uint64_t gpu_ns, bool counts);

  const nested_budget& book() const { return book_; }

private:
  struct open_attempt {
    uint64_t ticket = 0;
    std::string problem;
    std::string agent;
  };

  budget_amounts worst() const;

  nested_budget book_;
  uint64_t expected_ns_ = 0;
  bool limited_ = false;
  std::map<std::string, open_attempt> open_;
};

} // namespace gristmill
