#include "planning/nested_budget.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

constexpr budget_kind kinds[] = {budget_kind::money, budget_kind::tokens, budget_kind::calls,
  budget_kind::gpu_time, budget_kind::attempts};

constexpr uint64_t largest = std::numeric_limits<uint64_t>::max();

uint64_t sum(uint64_t a, uint64_t b) {
  return a > largest - b ? largest : a + b;
}

uint64_t difference(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

budget_amounts minus(const budget_amounts& a, const budget_amounts& b) {
  return {difference(a.nano_usd, b.nano_usd), difference(a.tokens, b.tokens),
    difference(a.calls, b.calls), difference(a.gpu_ns, b.gpu_ns),
    difference(a.attempts, b.attempts)};
}

budget_amounts larger(const budget_amounts& a, const budget_amounts& b) {
  return {std::max(a.nano_usd, b.nano_usd), std::max(a.tokens, b.tokens),
    std::max(a.calls, b.calls), std::max(a.gpu_ns, b.gpu_ns), std::max(a.attempts, b.attempts)};
}

bool stopped(const budget_amounts& a) {
  return std::any_of(
    std::begin(kinds), std::end(kinds), [&](auto kind) { return a.of(kind) == largest; });
}

/// With unit, exactly.
std::string amount_text(budget_kind kind, uint64_t amount) {
  switch (kind) {
  case budget_kind::money:
  case budget_kind::gpu_time: {
    auto text = fmt::format("{}.{:09}", amount / 1'000'000'000, amount % 1'000'000'000);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
    return text + (kind == budget_kind::money ? " USD" : " s under lease");
  }
  case budget_kind::tokens:
    return fmt::format("{} tokens", amount);
  case budget_kind::calls:
    return fmt::format("{} calls", amount);
  case budget_kind::attempts:
    return fmt::format("{} attempts", amount);
  }
  return {};
}

std::optional<budget_refusal> check(const std::string& whose, bool of_run,
  const budget_limits& limits, const budget_account& account, const budget_amounts& asked,
  bool for_good) {
  for (auto kind : kinds) {
    const auto& limit = limits.of(kind);
    // What asks for nothing of a kind is not stopped by it.
    if (!limit || asked.of(kind) == 0)
      continue;
    auto used = sum(account.spent.of(kind), account.held.of(kind));
    auto reserved = account.reserved.of(kind);
    auto total = sum(for_good ? used : sum(used, reserved), asked.of(kind));
    if (total > *limit)
      return budget_refusal{whose, kind, *limit, asked.of(kind),
        sum(sum(used, reserved), asked.of(kind)) - *limit, for_good, of_run};
  }
  return std::nullopt;
}

} // namespace

std::string to_string(budget_kind kind) {
  switch (kind) {
  case budget_kind::money:
    return "money";
  case budget_kind::tokens:
    return "tokens";
  case budget_kind::calls:
    return "calls";
  case budget_kind::gpu_time:
    return "GPU time";
  case budget_kind::attempts:
    return "attempts";
  }
  return "unknown";
}

uint64_t budget_amounts::of(budget_kind kind) const {
  switch (kind) {
  case budget_kind::money:
    return nano_usd;
  case budget_kind::tokens:
    return tokens;
  case budget_kind::calls:
    return calls;
  case budget_kind::gpu_time:
    return gpu_ns;
  case budget_kind::attempts:
    return attempts;
  }
  return 0;
}

budget_amounts& budget_amounts::operator+=(const budget_amounts& more) {
  nano_usd = sum(nano_usd, more.nano_usd);
  tokens = sum(tokens, more.tokens);
  calls = sum(calls, more.calls);
  gpu_ns = sum(gpu_ns, more.gpu_ns);
  attempts = sum(attempts, more.attempts);
  return *this;
}

const std::optional<uint64_t>& budget_limits::of(budget_kind kind) const {
  switch (kind) {
  case budget_kind::money:
    return nano_usd;
  case budget_kind::tokens:
    return tokens;
  case budget_kind::calls:
    return calls;
  case budget_kind::gpu_time:
    return gpu_ns;
  case budget_kind::attempts:
    return attempts;
  }
  return nano_usd;
}

bool budget_limits::any() const {
  return std::any_of(std::begin(kinds), std::end(kinds), [&](auto k) { return of(k).has_value(); });
}

std::string budget_refusal::text() const {
  return fmt::format("the budget of {} is {} and does not hold {} more: {} are missing{}", whose,
    amount_text(kind, limit), amount_text(kind, asked), amount_text(kind, missing),
    for_good ? "" : " while others are under way");
}

std::optional<budget_refusal> nested_budget::would_refuse(
  const std::string& problem, const std::string& agent, const budget_amounts& worst) const {
  const auto of_problem = this->problem(problem);
  const auto of_agent = this->agent(agent);
  for (bool for_good : {true, false}) {
    if (auto no = check("the run", true, limits_.run, run_, worst, for_good))
      return no;
    if (auto no = check(
          "problem '" + problem + "'", false, limits_.each_problem, of_problem, worst, for_good))
      return no;
    if (auto no =
          check("agent '" + agent + "'", false, limits_.each_agent, of_agent, worst, for_good))
      return no;
  }
  return std::nullopt;
}

template <class F>
void nested_budget::each(const std::string& problem, const std::string& agent, F change) {
  change(run_);
  change(problems_[problem]);
  change(agents_[agent]);
}

uint64_t nested_budget::reserve(
  const std::string& problem, const std::string& agent, const budget_amounts& worst) {
  if (would_refuse(problem, agent, worst))
    return 0;
  each(problem, agent, [&](budget_account& a) { a.reserved += worst; });
  auto ticket = next_++;
  open_.emplace(ticket, reservation{problem, agent, worst});
  return ticket;
}

std::optional<nested_budget::reservation> nested_budget::take(uint64_t ticket) {
  auto found = open_.find(ticket);
  if (found == open_.end())
    return std::nullopt;
  auto out = std::move(found->second);
  open_.erase(found);
  // A sum that stopped at the largest number cannot be taken apart again.
  if (stopped(run_.reserved)) {
    count_reserved_again();
    return out;
  }
  each(
    out.problem, out.agent, [&](budget_account& a) { a.reserved = minus(a.reserved, out.worst); });
  return out;
}

void nested_budget::count_reserved_again() {
  run_.reserved = {};
  for (auto& [name, account] : problems_)
    account.reserved = {};
  for (auto& [name, account] : agents_)
    account.reserved = {};
  for (const auto& [ticket, r] : open_)
    each(r.problem, r.agent, [&](budget_account& a) { a.reserved += r.worst; });
}

bool nested_budget::settle(uint64_t ticket, const budget_amounts& used) {
  auto open = take(ticket);
  if (!open)
    return false;
  each(open->problem, open->agent, [&](budget_account& a) { a.spent += used; });
  return true;
}

bool nested_budget::hold(
  uint64_t ticket, const budget_amounts& known, const budget_amounts& worst) {
  auto open = take(ticket);
  if (!open)
    return false;
  auto kept = minus(larger(open->worst, worst), known);
  each(open->problem, open->agent, [&](budget_account& a) {
    a.spent += known;
    a.held += kept;
  });
  return true;
}

bool nested_budget::release(uint64_t ticket) {
  return take(ticket).has_value();
}

void nested_budget::restore(const std::string& problem, const std::string& agent,
  const budget_amounts& spent, const budget_amounts& held) {
  each(problem, agent, [&](budget_account& a) {
    a.spent += spent;
    a.held += held;
  });
}

budget_account nested_budget::problem(const std::string& name) const {
  auto found = problems_.find(name);
  return found == problems_.end() ? budget_account{} : found->second;
}

budget_account nested_budget::agent(const std::string& name) const {
  auto found = agents_.find(name);
  return found == agents_.end() ? budget_account{} : found->second;
}

} // namespace gristmill
