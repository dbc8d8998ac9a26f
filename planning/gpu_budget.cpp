#include "planning/gpu_budget.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Money, tokens and calls are the gateway's.
budget_limits of_planner(budget_limits limits) {
  limits.nano_usd.reset();
  limits.tokens.reset();
  limits.calls.reset();
  return limits;
}

} // namespace

gpu_budget::gpu_budget(
  budget_limits each_problem, budget_limits each_agent, std::chrono::nanoseconds expected)
  : book_({{}, of_planner(each_problem), of_planner(each_agent)}),
    expected_ns_(static_cast<uint64_t>(std::max<int64_t>(expected.count(), 0))) {
  for (const auto* limits : {&each_problem, &each_agent})
    expected_ns_ = std::min(expected_ns_, limits->gpu_ns.value_or(expected_ns_));
  limited_ = book_.given().each_problem.any() || book_.given().each_agent.any();
}

budget_amounts gpu_budget::worst() const {
  budget_amounts out;
  // At least 1, so that what is spent to the last nanosecond refuses.
  out.gpu_ns = std::max<uint64_t>(expected_ns_, 1);
  out.attempts = 1;
  return out;
}

std::optional<budget_refusal> gpu_budget::would_refuse(
  const std::string& problem, const std::string& agent) const {
  return limited_ ? book_.would_refuse(problem, agent, worst()) : std::nullopt;
}

bool gpu_budget::begin(
  const std::string& attempt, const std::string& problem, const std::string& agent) {
  if (!limited_)
    return true;
  if (open_.count(attempt) != 0)
    return false;
  auto ticket = book_.reserve(problem, agent, worst());
  if (ticket == 0)
    return false;
  open_.emplace(attempt, open_attempt{ticket, problem, agent});
  return true;
}

void gpu_budget::begin_again(
  const std::string& attempt, const std::string& problem, const std::string& agent) {
  if (!limited_ || open_.count(attempt) != 0)
    return;
  open_.emplace(attempt, open_attempt{book_.reserve(problem, agent, worst()), problem, agent});
}

bool gpu_budget::end(const std::string& attempt, uint64_t gpu_ns, bool counts) {
  auto found = open_.find(attempt);
  if (found == open_.end())
    return false;
  budget_amounts used;
  used.gpu_ns = gpu_ns;
  used.attempts = counts ? 1 : 0;
  const auto& a = found->second;
  if (a.ticket != 0)
    book_.settle(a.ticket, used);
  else
    book_.restore(a.problem, a.agent, used, {});
  open_.erase(found);
  return true;
}

} // namespace gristmill
