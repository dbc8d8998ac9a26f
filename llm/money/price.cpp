#include "llm/money/price.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace gristmill {

namespace {

using wide = unsigned __int128;

constexpr uint64_t largest = std::numeric_limits<uint64_t>::max();

uint64_t narrow(wide value) {
  return value > largest ? largest : static_cast<uint64_t>(value);
}

/// 10^-12 USD to 10^-9 USD, never less than it costs.
uint64_t to_nano(wide pico) {
  return narrow((pico + 999) / 1000);
}

uint64_t sum(uint64_t a, uint64_t b) {
  return narrow(wide{a} + b);
}

uint64_t text_bytes(const llm_request& request) {
  uint64_t bytes = request.instructions.size();
  for (const auto& m : request.messages)
    bytes = sum(bytes, m.text.size());
  return bytes;
}

/// For the marks around the instructions and each message.
constexpr uint64_t overhead = 64;
constexpr uint64_t overhead_a_message = 16;

} // namespace

std::string to_string(price_origin origin) {
  switch (origin) {
  case price_origin::table:
    return "table";
  case price_origin::local:
    return "local";
  case price_origin::unpriced:
    return "unpriced";
  }
  return "unknown";
}

result<deployment_price> price_for(
  const model_file& models, size_t deployment, bool allow_unpriced) {
  const auto& d = models.deployments.at(deployment);
  if (const auto* found = models.price_of(d.model))
    return deployment_price{price_origin::table, *found};
  if (d.loopback)
    return deployment_price{price_origin::local, {}};
  if (allow_unpriced)
    return deployment_price{price_origin::unpriced, {}};
  std::vector<std::string> priced;
  for (const auto& p : models.prices)
    priced.push_back(p.model);
  return fail(errc::invalid_input,
    fmt::format("{}{}deployment '{}': the price of its model '{}' is not known{}; add a [[price]] "
                "with its date, or pass --allow-unpriced, and no budget in USD will hold it",
      models.source, models.source.empty() ? "" : ": ", d.name, d.model,
      suggestion(d.model, priced)));
}

uint64_t cost_of(const model_price& rate, const llm_usage& usage) {
  // Each product has less than 105 bits, as prices have at most 40.
  return to_nano(wide{usage.uncached_input} * rate.input + wide{usage.cache_read} * rate.cached_read
    + wide{usage.cache_write} * rate.cache_write
    + (wide{usage.visible_output} + usage.reasoning) * rate.output);
}

uint64_t input_tokens_max(const llm_request& request) {
  return sum(text_bytes(request), overhead + overhead_a_message * request.messages.size());
}

uint64_t input_tokens_likely(const llm_request& request) {
  return text_bytes(request) / 3 + overhead_a_message * (request.messages.size() + 1);
}

budget_amounts worst_case(const model_deployment& where, const deployment_price& price,
  const llm_request& request, uint32_t cap) {
  auto input = input_tokens_max(request);
  if (where.context_tokens)
    input = std::min(input, *where.context_tokens);
  const auto& r = price.rate;
  budget_amounts out;
  out.calls = 1;
  out.tokens = sum(input, cap);
  out.nano_usd =
    to_nano(wide{input} * std::max({r.input, r.cached_read, r.cache_write}) + wide{cap} * r.output);
  return out;
}

budget_amounts exact_use(const deployment_price& price, const llm_usage& usage) {
  budget_amounts out;
  out.calls = 1;
  out.tokens = narrow(wide{usage.uncached_input} + usage.cache_read + usage.cache_write
    + usage.visible_output + usage.reasoning);
  out.nano_usd = cost_of(price.rate, usage);
  return out;
}

} // namespace gristmill
