#include "llm/money/dry_run.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

struct two_models {
  model_file models;
  dry_run_settings settings;

  two_models() {
    model_deployment big;
    big.name = "big";
    big.model = "big-1";
    big.endpoint = "https://api.example.org";
    big.output_tokens_max = 4000;
    model_deployment local;
    local.name = "local";
    local.model = "toy";
    local.endpoint = "http://127.0.0.1:1";
    local.loopback = true;
    local.output_tokens_max = 4000;
    models.deployments = {big, local};
    model_price price;
    price.model = "big-1";
    price.as_of = std::chrono::year{2026} / 11 / 30;
    price.input = 1'000'000;
    price.cached_read = 100'000;
    price.cache_write = 1'000'000;
    price.output = 10'000'000;
    models.prices = {price};
    models.roles["propose"] = {0, 1};
    models.roles["reflect"] = {1};
    settings.roles = {{"propose", 100, 10'000, 1000}, {"reflect", 10, 5'000, 1000}};
  }
};

} // namespace

TEST_SUITE_BEGIN("dry run");

TEST_CASE_FIXTURE(
  two_models, "a row says what one call costs, with its date, at best and at worst") {
  settings.limits.run.nano_usd = 100'000'000'000;
  auto table = worst_case_cost(models, settings);
  REQUIRE(table);
  REQUIRE(table->rows.size() == 3);
  const auto& big = table->rows[0];
  CHECK(big.deployment == "big");
  CHECK(big.as_of == "2026-11-30");
  CHECK(big.call_tokens == 11'000);
  // 10,000 in at 1 USD and 1,000 out at 10 USD per million.
  CHECK(big.call_nano_usd == 20'000'000);
  // Caps of 1000, 2000 and 4000, then four failed retries at 4000.
  CHECK(big.call_tries_worst == 7);
  CHECK(big.call_nano_usd_worst == 20'000'000 + 30'000'000 + 50'000'000 + 4 * 50'000'000);
  CHECK(table->rows[1].origin == price_origin::local);
  CHECK(table->rows[1].call_nano_usd == 0);
  CHECK(table->rows[2].role == "reflect");
}

TEST_CASE_FIXTURE(two_models, "the sum takes the dearest deployment of each role, or the budget") {
  settings.limits.run.nano_usd = 100'000'000'000;
  auto table = worst_case_cost(models, settings);
  REQUIRE(table);
  CHECK(table->nano_usd == 100u * 300'000'000ull);
  CHECK(table->nano_usd_set_by.empty());
  CHECK(table->calls == 110u * 7u);
  settings.limits.run.nano_usd = 5'000'000'000;
  table = worst_case_cost(models, settings);
  CHECK(table->nano_usd == 5'000'000'000u);
  CHECK(table->nano_usd_set_by == "--budget");
  settings.limits.each_agent.nano_usd = 1'000'000'000;
  settings.agents = 3;
  table = worst_case_cost(models, settings);
  CHECK(table->nano_usd == 3'000'000'000u);
  CHECK(table->nano_usd_set_by == "--agent-budget");
  CHECK(table->text().find("at most USD    3 (--agent-budget)") != std::string::npos);
}

TEST_CASE_FIXTURE(two_models, "money without any limit is refused, and the cure is named") {
  settings.roles[0].calls.reset();
  auto no = worst_case_cost(models, settings);
  REQUIRE_FALSE(no);
  CHECK(no.error().code == errc::invalid_input);
  CHECK(no.error().what.find("--budget 5usd") != std::string::npos);
  settings.limits.run.calls = 7;
  auto table = worst_case_cost(models, settings);
  REQUIRE(table);
  CHECK(table->calls == 7u);
  CHECK(table->calls_set_by == "--budget");
  CHECK_FALSE(table->nano_usd);
}

TEST_CASE_FIXTURE(
  two_models, "a run that pays nothing needs no limit, and its tokens are counted") {
  models.roles["propose"] = {1};
  settings.roles[0].calls.reset();
  auto table = worst_case_cost(models, settings);
  REQUIRE(table);
  CHECK(table->nano_usd == 0u);
  CHECK_FALSE(table->tokens);
  settings.roles[0].calls = 1;
  CHECK(*worst_case_cost(models, settings)->tokens > 0);
}

TEST_CASE_FIXTURE(two_models, "an unknown price and a cap that fits nowhere are refused") {
  auto unpriced = models;
  unpriced.prices.clear();
  CHECK_FALSE(worst_case_cost(unpriced, settings));
  settings.allow_unpriced = true;
  auto table = worst_case_cost(unpriced, settings);
  REQUIRE(table);
  CHECK(
    table->text().find("do not hold what models without a known price cost") != std::string::npos);
  settings.roles[1].output_tokens_max = 5000;
  auto no = worst_case_cost(models, settings);
  REQUIRE_FALSE(no);
  CHECK(no.error().what.find("role 'reflect'") != std::string::npos);
}

TEST_CASE("amounts of money are written exactly") {
  CHECK(usd_text(0) == "0");
  CHECK(usd_text(1) == "0.000000001");
  CHECK(usd_text(1'250'000'000) == "1.25");
  CHECK(usd_text(5'000'000'000) == "5");
}

TEST_SUITE_END();
