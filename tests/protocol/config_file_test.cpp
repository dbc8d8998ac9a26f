#include "protocol/config_file.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("an empty config has the defaults of the format") {
  CHECK(parse_config_file("{}", "config.json").value() == config_file{10, 50, false, true, 200});
}

TEST_CASE("a config is lenient about how a number is written, and nothing else") {
  const auto read = parse_config_file(
    R"({"warmup_runs":"0","iterations":3.0,"lock_clocks":"yes","benchmark_reference":0,"seed":-1})",
    "config.json");
  CHECK(read.value() == config_file{0, 3, true, false, -1});
}

TEST_CASE("an unknown key of a config is an error on its line") {
  const auto read = parse_config_file("{\n\"seed\": 1,\n\"iteration\": 2}", "config.json");
  REQUIRE_FALSE(read);
  CHECK(read.error().what == "config.json:3: iteration: unknown key; did you mean `iterations`?");
}

TEST_CASE("a written config reads as the same one") {
  const config_file given{1, 2, true, false, 3};
  const auto written = to_json(given);
  CHECK(parse_config_file(written, "config.json").value() == given);
  CHECK(to_json(parse_config_file(written, "config.json").value()) == written);
}

TEST_CASE("a config that is not there is told apart from a wrong one") {
  CHECK(load_config_file("no/such/config.json").error().code == errc::not_found);
}
