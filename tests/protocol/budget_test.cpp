#include "protocol/budget.hpp"
#include "protocol/duration_text.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("each kind of budget is read in its unit") {
  auto read = parse_budget({"10m", "500attempts", "600gpu-s"});
  REQUIRE(read);
  CHECK(read->wall_ns == 600'000'000'000u);
  CHECK(read->attempts == 500);
  CHECK(read->gpu_ns == 600'000'000'000u);
  CHECK(parse_budget({"1.5h"})->wall_ns == 5'400'000'000'000u);
  CHECK(parse_budget({"90s"})->wall_ns == 90'000'000'000u);
  CHECK(parse_budget({"1attempt"})->attempts == 1);
  CHECK(parse_budget({"0.5gpu-h"})->gpu_ns == 1'800'000'000'000u);
  CHECK(*parse_budget({}) == budget{});
}

TEST_CASE("money, tokens and calls are read exactly") {
  auto read = parse_budget({"5usd", "2000000tokens", "1000calls"});
  REQUIRE(read);
  CHECK(read->nano_usd == 5'000'000'000u);
  CHECK(read->tokens == 2'000'000u);
  CHECK(read->calls == 1000u);
  CHECK(parse_budget({"0.5usd"})->nano_usd == 500'000'000u);
  CHECK(parse_budget({"0.000000001usd"})->nano_usd == 1u);
  CHECK(parse_budget({"1call", "1token"})->calls == 1u);
  for (const char* wrong :
    {"usd", "-1usd", "1e3usd", "0.0000000001usd", "0usd", "1.5tokens", "1.5calls", "$5", "5$"})
    CHECK_FALSE(parse_budget({wrong}));
  CHECK(parse_budget({"5usd", "6usd"}).error().what.find("twice") != std::string::npos);
}

TEST_CASE("a misspelt unit is answered with the nearest one") {
  auto what = [](const char* text) { return parse_budget({text}).error().what; };
  CHECK(what("5uds").find("did you mean `5usd`?") != std::string::npos);
  CHECK(what("5USD").find("did you mean `5usd`?") != std::string::npos);
  CHECK(what("100token5").find("did you mean `100tokens`?") != std::string::npos);
  CHECK(what("600gpus").find("did you mean `600gpu-s`?") != std::string::npos);
}

TEST_CASE("a budget of each problem or agent has no wall time, and its flag is named") {
  auto read = parse_share_budget({"0.5usd", "600gpu-s", "20attempts"}, "--problem-budget");
  REQUIRE(read);
  CHECK(read->nano_usd == 500'000'000u);
  CHECK(read->attempts == 20u);
  auto what = parse_share_budget({"10m"}, "--agent-budget").error().what;
  CHECK(what.starts_with("--agent-budget"));
  CHECK(what.find("wall time is of the whole run") != std::string::npos);
  CHECK(parse_share_budget({"5uds"}, "--agent-budget").error().what.starts_with("--agent-budget"));
  CHECK_FALSE(parse_share_budget({"5usd", "6usd"}, "--agent-budget"));
}

TEST_CASE("an unreadable budget is refused with examples") {
  for (const char* wrong : {"", "10", "m", "10 m", "-5m", "1e3s", "10x", "1.5attempts", "attempts",
         "5gpu-x", "gpu-s", "99999999999999999999s", "300000d", "1.m", "10m5", "5attempts1"}) {
    auto read = parse_budget({wrong});
    CAPTURE(wrong);
    REQUIRE_FALSE(read);
    CHECK(read.error().what.find("600gpu-s") != std::string::npos);
  }
}

TEST_CASE("a kind given twice and a budget of nothing are refused") {
  CHECK(parse_budget({"10m", "5s"}).error().what.find("twice") != std::string::npos);
  CHECK_FALSE(parse_budget({"5attempts", "6attempts"}));
  CHECK_FALSE(parse_budget({"5gpu-s", "5gpu-m"}));
  CHECK(parse_budget({"0m"}).error().what.find("more than zero") != std::string::npos);
  CHECK_FALSE(parse_budget({"0attempts"}));
}

TEST_CASE("durations are exact to the nanosecond and never rounded") {
  CHECK(*parse_duration_ns("100ms") == 100'000'000);
  CHECK(*parse_duration_ns("0.000000001s") == 1);
  CHECK(*parse_duration_ns("1.000000001s") == 1'000'000'001);
  CHECK(*parse_duration_ns("2us") == 2000);
  CHECK(*parse_duration_ns("0s") == 0);
  CHECK(*parse_duration_ns("1d") == 86'400'000'000'000u);
  CHECK_FALSE(parse_duration_ns("0.0000000001s"));
  CHECK_FALSE(parse_duration_ns("0.5ns"));
  CHECK_FALSE(parse_duration_ns(".5s"));
}
