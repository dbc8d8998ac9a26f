#include "llm/money/price.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

/// USD per million tokens, as in a model file.
model_price rate(double input, double cached_read, double cache_write, double output) {
  auto pico = [](double usd) { return static_cast<uint64_t>(usd * 1e6 + 0.5); };
  model_price out;
  out.model = "m";
  out.as_of = std::chrono::year{2026} / 11 / 30;
  out.input = pico(input);
  out.cached_read = pico(cached_read);
  out.cache_write = pico(cache_write);
  out.output = pico(output);
  return out;
}

llm_usage usage(uint64_t input, uint64_t read, uint64_t write, uint64_t text, uint64_t reasoning) {
  return {usage_state::exact, input, read, write, text, reasoning};
}

model_file one_model(const std::string& endpoint, bool loopback) {
  model_file out;
  model_deployment d;
  d.name = "only";
  d.endpoint = endpoint;
  d.model = "gpt-mini";
  d.loopback = loopback;
  out.deployments.push_back(d);
  out.roles["propose"] = {0};
  return out;
}

} // namespace

TEST_SUITE_BEGIN("prices");

TEST_CASE("one USD per million tokens is a thousand nano-USD a token") {
  CHECK(cost_of(rate(1, 1, 1, 1), usage(1, 0, 0, 0, 0)) == 1000);
  CHECK(cost_of(rate(3, 0.3, 3.75, 15), usage(1'000'000, 1'000'000, 1'000'000, 500'000, 500'000))
    == 22'050'000'000u);
}

// litellm#11364 charged cache reads at the full price, #29145 at nothing, #16341 priced writes
// wrongly.
TEST_CASE("litellm#11364 #29145 #16341: each kind of token has its own price, and none is free") {
  auto r = rate(3, 0.3, 3.75, 15);
  CHECK(cost_of(r, usage(0, 1'000'000, 0, 0, 0)) == 300'000'000u);
  CHECK(cost_of(r, usage(0, 0, 1'000'000, 0, 0)) == 3'750'000'000u);
  CHECK(cost_of(r, usage(1'000'000, 0, 0, 0, 0)) == 3'000'000'000u);
}

// headroom#2757: cached tokens larger than the prompt made the input negative and the price 0.
TEST_CASE("headroom#2757: more cached tokens never make a call cheaper than without them") {
  auto r = rate(3, 0.3, 3.75, 15);
  auto plain = cost_of(r, usage(1000, 0, 0, 10, 0));
  for (uint64_t cached : {1u, 999u, 1000u, 5000u, 1'000'000u})
    CHECK(cost_of(r, usage(1000, cached, 0, 10, 0)) > plain);
}

// agentdescent#189: 20 rounds of 4 workers at 30 to 50 thousand hidden tokens are 6.4 million
// tokens.
TEST_CASE("agentdescent#189: hidden reasoning is paid like text and counts as tokens") {
  auto r = rate(1, 0.1, 1.25, 10);
  CHECK(cost_of(r, usage(0, 0, 0, 120, 40'000)) == cost_of(r, usage(0, 0, 0, 40'120, 0)));
  budget_amounts all;
  for (int call = 0; call < 80; ++call)
    all += exact_use({price_origin::table, r}, usage(40'000, 0, 0, 120, 40'000));
  CHECK(all.tokens == 6'409'600u);
  CHECK(all.calls == 80);
  CHECK(all.nano_usd == 80 * 441'200'000ull);
}

TEST_CASE("a part of a nano-USD is rounded up, once for the call") {
  model_price r;
  r.input = 1;
  r.output = 1;
  CHECK(cost_of(r, usage(1, 0, 0, 1, 0)) == 1);
  CHECK(cost_of(r, usage(500, 0, 0, 500, 0)) == 1);
  CHECK(cost_of(r, usage(501, 0, 0, 500, 0)) == 2);
  CHECK(cost_of(r, usage(0, 0, 0, 0, 0)) == 0);
}

TEST_CASE("absurd usage costs the largest amount and does not start again at zero") {
  auto r = rate(1'000'000, 1'000'000, 1'000'000, 1'000'000);
  auto all = usage(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
  CHECK(cost_of(r, all) == UINT64_MAX);
  CHECK(exact_use({price_origin::table, r}, all).tokens == UINT64_MAX);
}

TEST_CASE("a server on this machine is free unless the table says otherwise: it may be a proxy") {
  auto models = one_model("http://127.0.0.1:4000", true);
  auto price = price_for(models, 0, false);
  REQUIRE(price);
  CHECK(price->origin == price_origin::local);
  auto of_proxy = rate(1, 1, 1, 1);
  of_proxy.model = "gpt-mini";
  models.prices.push_back(of_proxy);
  CHECK(price_for(models, 0, false)->origin == price_origin::table);
}

TEST_CASE("an unknown price is refused with the deployment, the nearest price and the cure") {
  auto models = one_model("https://api.example.org", false);
  auto near = rate(1, 1, 1, 1);
  near.model = "gpt-mink";
  models.prices.push_back(near);
  auto no = price_for(models, 0, false);
  REQUIRE_FALSE(no);
  CHECK(no.error().code == errc::invalid_input);
  for (const char* part : {"'only'", "'gpt-mini'", "did you mean `gpt-mink`?", "--allow-unpriced"})
    CHECK(no.error().what.find(part) != std::string::npos);
  auto allowed = price_for(models, 0, true);
  REQUIRE(allowed);
  CHECK(allowed->origin == price_origin::unpriced);
}

TEST_CASE("the worst case holds every token that a prompt can be, and the whole cap") {
  auto models = one_model("https://h", false);
  llm_request request;
  request.instructions = std::string(1000, 'x');
  request.messages = {{chat_role::user, std::string(500, 'y')}, {chat_role::assistant, "z"}};
  auto r = rate(1, 0.1, 1.25, 10);
  auto worst = worst_case(models.deployments[0], {price_origin::table, r}, request, 2000);
  const uint64_t input = 1501 + 64 + 2 * 16;
  CHECK(worst.calls == 1);
  CHECK(worst.tokens == input + 2000);
  CHECK(worst.nano_usd == input * 1250 + 2000 * 10'000);
  // A server refuses what is larger than its context.
  models.deployments[0].context_tokens = 100;
  CHECK(worst_case(models.deployments[0], {price_origin::table, r}, request, 2000).tokens == 2100);
}

TEST_CASE("no usage within a prompt's bytes and the cap costs more than the worst case") {
  auto r = rate(2, 0.2, 2.5, 8);
  auto models = one_model("https://h", false);
  for (uint64_t bytes : {0u, 1u, 100u, 60'000u})
    for (uint32_t cap : {1u, 400u, 32'000u})
      for (int kind = 0; kind < 3; ++kind) {
        llm_request request;
        request.instructions = std::string(bytes, 'a');
        auto worst = worst_case(models.deployments[0], {price_origin::table, r}, request, cap);
        auto real =
          usage(kind == 0 ? bytes : 0, kind == 1 ? bytes : 0, kind == 2 ? bytes : 0, cap, 0);
        CHECK(cost_of(r, real) <= worst.nano_usd);
        CHECK(exact_use({price_origin::table, r}, real).tokens <= worst.tokens);
      }
}

TEST_SUITE_END();
