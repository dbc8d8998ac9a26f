#pragma once

#include "llm/money/price.hpp"
#include "messages/result.hpp"
#include "planning/nested_budget.hpp"
#include "protocol/model_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// What one role of models may do in a run.
struct dry_run_role {
  /// "propose", "repair", "reflect".
  std::string role;
  /// Calls in the whole run, retries not counted; absent: no limit but the budgets'.
  std::optional<uint64_t> calls;
  /// Most tokens of a prompt, and the cap on its answer.
  uint64_t prompt_tokens_max = 0;
  uint32_t output_tokens_max = 0;
};

struct dry_run_settings {
  std::vector<dry_run_role> roles;
  nested_budget::limits limits;
  uint64_t problems = 1;
  uint64_t agents = 1;
  bool allow_unpriced = false;
};

/// If all calls of the role went to this deployment.
struct dry_run_row {
  std::string role;
  std::string deployment;
  std::string model;
  price_origin origin = price_origin::local;
  /// "2026-11-30"; empty without a price.
  std::string as_of;
  /// Absent: no limit but the budgets'.
  std::optional<uint64_t> calls;
  /// Of one call with one try; its money.
  uint64_t call_tokens = 0;
  uint64_t call_nano_usd = 0;
  /// Of one call in the worst case: every retry used and billed, every answer cut off and asked for
  /// again with a doubled cap.
  uint64_t call_tries_worst = 0;
  uint64_t call_tokens_worst = 0;
  uint64_t call_nano_usd_worst = 0;
};

struct dry_run_table {
  std::vector<dry_run_row> rows;
  /// Bounds on the whole run: what the rows' dearest deployments come to, or the budgets, whichever
  /// is less. `calls` counts tries, as the budgets do. Absent: no bound.
  std::optional<uint64_t> calls;
  std::optional<uint64_t> tokens;
  std::optional<uint64_t> nano_usd;
  /// Which budget sets each bound that is there, such as "the run's budget of 5 USD"; empty where
  /// the number of calls does.
  std::string calls_set_by;
  std::string tokens_set_by;
  std::string nano_usd_set_by;
  /// The table for a person, with headings and sums.
  std::string text() const;
};

/// What a run may cost at most. `invalid_input` when money is to be paid and nothing limits it (no
/// budget of USD, tokens or calls, and no number of calls): says which flag to set; for an unknown
/// price, and for a role without a deployment that can take its cap.
result<dry_run_table> worst_case_cost(const model_file& models, const dry_run_settings& settings);

/// "1.25", "0.000001": USD without trailing zeros.
std::string usd_text(uint64_t nano_usd);

} // namespace gristmill
