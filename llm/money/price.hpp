#pragma once

#include "messages/llm.hpp"
#include "messages/result.hpp"
#include "planning/nested_budget.hpp"
#include "protocol/model_file.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// How the price of a deployment is known.
enum class price_origin : uint8_t {
  /// From the price table.
  table = 0,
  /// A server on this machine without an entry in the table: nothing to pay.
  local,
  /// Nobody knows, and the user allowed it: money is not counted, tokens are.
  unpriced,
};

std::string to_string(price_origin origin);

struct deployment_price {
  price_origin origin = price_origin::local;
  model_price rate;
};

/// The table wins, also for a server on this machine, which may be a proxy. `invalid_input` for a
/// price that nobody knows, unless `allow_unpriced`: names deployment and model and the cure.
result<deployment_price> price_for(
  const model_file& models, size_t deployment, bool allow_unpriced);

/// In 10^-9 USD, rounded up once for the whole call. Sums stop at the largest number.
uint64_t cost_of(const model_price& rate, const llm_usage& usage);

/// The most tokens that a text can be: one a byte, for every byte-level vocabulary, and some for
/// the roles around each message.
uint64_t input_tokens_max(const llm_request& request);
/// What a text probably is, for rate limits: a third of its bytes.
uint64_t input_tokens_likely(const llm_request& request);

/// The worst case of one call with this cap: every token of the prompt at the dearest input price,
/// every token of the cap. Never more input than `context_tokens`, which a server refuses.
budget_amounts worst_case(const model_deployment& where, const deployment_price& price,
  const llm_request& request, uint32_t cap);

/// What a call used whose usage is known: one call, its tokens, its money.
budget_amounts exact_use(const deployment_price& price, const llm_usage& usage);

} // namespace gristmill
