#include "llm/money/dry_run.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

/// As gateway_policy: these many tries of one call may be billed without an answer, and so often is
/// a cut-off answer asked for again. `tests/llm/traffic` holds them against the policy.
constexpr uint32_t retries_max = 4;
constexpr uint32_t resends_max = 3;

constexpr uint64_t largest = std::numeric_limits<uint64_t>::max();

uint64_t product(uint64_t a, uint64_t b) {
  auto wide = static_cast<unsigned __int128>(a) * b;
  return wide > largest ? largest : static_cast<uint64_t>(wide);
}

uint64_t sum(uint64_t a, uint64_t b) {
  return a > largest - b ? largest : a + b;
}

/// A prompt of exactly so many tokens in the worst case.
budget_amounts one_try(const model_deployment& where, const deployment_price& price,
  uint64_t prompt_tokens, uint32_t cap) {
  auto input = prompt_tokens;
  if (where.context_tokens)
    input = std::min(input, *where.context_tokens);
  model_price dearest = price.rate;
  dearest.input = std::max({price.rate.input, price.rate.cached_read, price.rate.cache_write});
  llm_usage usage;
  usage.state = usage_state::exact;
  usage.uncached_input = input;
  usage.visible_output = cap;
  auto out = exact_use({price.origin, dearest}, usage);
  out.calls = 1;
  return out;
}

dry_run_row row_of(
  const model_file& models, size_t d, const deployment_price& price, const dry_run_role& role) {
  const auto& where = models.deployments[d];
  dry_run_row row;
  row.role = role.role;
  row.deployment = where.name;
  row.model = where.model;
  row.origin = price.origin;
  if (price.origin == price_origin::table)
    row.as_of = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(price.rate.as_of.year()),
      static_cast<unsigned>(price.rate.as_of.month()),
      static_cast<unsigned>(price.rate.as_of.day()));
  row.calls = role.calls;
  auto once = one_try(where, price, role.prompt_tokens_max, role.output_tokens_max);
  row.call_tokens = once.tokens;
  row.call_nano_usd = once.nano_usd;
  // Each resend doubles the cap; the dearest place for the failing tries is the last cap.
  auto cap = role.output_tokens_max;
  budget_amounts worst = once;
  uint64_t tries = 1;
  for (uint32_t i = 0; i < resends_max && cap < where.output_tokens_max; ++i, ++tries) {
    cap = cap > where.output_tokens_max / 2 ? where.output_tokens_max : cap * 2;
    worst += one_try(where, price, role.prompt_tokens_max, cap);
  }
  auto failing = one_try(where, price, role.prompt_tokens_max, cap);
  for (uint32_t i = 0; i < retries_max; ++i, ++tries)
    worst += failing;
  row.call_tries_worst = tries;
  row.call_tokens_worst = worst.tokens;
  row.call_nano_usd_worst = worst.nano_usd;
  return row;
}

/// The smallest of the budgets that hold for the whole run.
struct bound {
  std::optional<uint64_t> value;
  std::string by;

  void take(std::optional<uint64_t> limit, uint64_t times, const char* whose) {
    if (!limit)
      return;
    auto all = product(*limit, times);
    if (!value || all < *value) {
      value = all;
      by = whose;
    }
  }
};

bound bound_of(const dry_run_settings& settings, budget_kind kind) {
  bound out;
  out.take(settings.limits.run.of(kind), 1, "--budget");
  out.take(settings.limits.each_problem.of(kind), settings.problems, "--problem-budget");
  out.take(settings.limits.each_agent.of(kind), settings.agents, "--agent-budget");
  return out;
}

void set_bound(std::optional<uint64_t>& value, std::string& by, const bound& budgets) {
  if (budgets.value && (!value || *budgets.value < *value)) {
    value = budgets.value;
    by = budgets.by;
  }
}

} // namespace

result<dry_run_table> worst_case_cost(const model_file& models, const dry_run_settings& settings) {
  dry_run_table out;
  bool all_counted = true;
  bool pays = false;
  uint64_t calls = 0;
  uint64_t tokens = 0;
  uint64_t money = 0;
  for (const auto& role : settings.roles) {
    uint64_t dearest = 0;
    uint64_t most_tokens = 0;
    uint64_t most_tries = 0;
    bool any = false;
    for (auto d : models.role(role.role)) {
      auto price = price_for(models, d, settings.allow_unpriced);
      if (!price)
        return pass(price);
      if (role.output_tokens_max > models.deployments[d].output_tokens_max)
        continue;
      any = true;
      auto row = row_of(models, d, *price, role);
      dearest = std::max(dearest, row.call_nano_usd_worst);
      most_tokens = std::max(most_tokens, row.call_tokens_worst);
      most_tries = std::max(most_tries, row.call_tries_worst);
      pays = pays || price->origin != price_origin::local;
      out.rows.push_back(std::move(row));
    }
    if (!any)
      return fail(errc::invalid_input,
        fmt::format("role '{}': no deployment has an output_tokens_max of {} or more, which its "
                    "calls need",
          role.role, role.output_tokens_max));
    if (!role.calls) {
      all_counted = false;
      continue;
    }
    calls = sum(calls, product(*role.calls, most_tries));
    tokens = sum(tokens, product(*role.calls, most_tokens));
    money = sum(money, product(*role.calls, dearest));
  }
  if (all_counted) {
    out.calls = calls;
    out.tokens = tokens;
    out.nano_usd = money;
  }
  set_bound(out.calls, out.calls_set_by, bound_of(settings, budget_kind::calls));
  set_bound(out.tokens, out.tokens_set_by, bound_of(settings, budget_kind::tokens));
  set_bound(out.nano_usd, out.nano_usd_set_by, bound_of(settings, budget_kind::money));
  if (pays && !out.calls && !out.tokens && !out.nano_usd)
    return fail(errc::invalid_input,
      "the models of this run cost money and nothing limits it: set --budget 5usd (or tokens, "
      "calls or attempts)");
  // Nothing to pay is a bound too.
  if (!pays && !out.nano_usd)
    out.nano_usd = 0;
  return out;
}

std::string usd_text(uint64_t nano_usd) {
  auto text = fmt::format("{}.{:09}", nano_usd / 1'000'000'000, nano_usd % 1'000'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

std::string dry_run_table::text() const {
  std::string out =
    fmt::format("{:<10}{:<16}{:<24}{:>10}{:>14}{:>14}{:>8}{:>14}{:>14}  {}\n", "role", "deployment",
      "model", "calls", "tokens/call", "USD/call", "tries", "worst tokens", "worst USD", "price");
  for (const auto& r : rows) {
    const bool priced = r.origin != price_origin::unpriced;
    out += fmt::format("{:<10}{:<16}{:<24}{:>10}{:>14}{:>14}{:>8}{:>14}{:>14}  {}\n", r.role,
      r.deployment, r.model, r.calls ? std::to_string(*r.calls) : "no limit", r.call_tokens,
      priced ? usd_text(r.call_nano_usd) : "unknown", r.call_tries_worst, r.call_tokens_worst,
      priced ? usd_text(r.call_nano_usd_worst) : "unknown",
      r.as_of.empty() ? to_string(r.origin) : "as of " + r.as_of);
  }
  auto line = [&](const char* what, const std::optional<uint64_t>& value, const std::string& by,
                const std::string& shown) {
    out += fmt::format(
      "at most {:<7}{}{}\n", what, value ? shown : "no limit", by.empty() ? "" : " (" + by + ")");
  };
  line("calls", calls, calls_set_by, std::to_string(calls.value_or(0)));
  line("tokens", tokens, tokens_set_by, std::to_string(tokens.value_or(0)));
  line("USD", nano_usd, nano_usd_set_by, usd_text(nano_usd.value_or(0)));
  const bool unknown = std::any_of(
    rows.begin(), rows.end(), [](const auto& r) { return r.origin == price_origin::unpriced; });
  if (unknown)
    out += "The USD do not hold what models without a known price cost.\n";
  out +=
    "Bounds, not forecasts: the largest prompt at one token a byte, every retry used and billed.\n";
  return out;
}

} // namespace gristmill
