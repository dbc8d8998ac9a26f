#include "simulation/selfcheck/selfcheck.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

using namespace gristmill;

namespace {

check check_of(const std::string& name, double exact, double value) {
  check out;
  out.name = name;
  out.what = "what";
  out.source = "source";
  out.config = "config\n";
  out.lines = {{"line", exact}};
  out.run = [value](uint64_t seed, mutant_kind) -> result<seed_outcome> {
    seed_outcome one;
    one.values = {value + 1e-3 * (seed % 2 == 0 ? 1 : -1)};
    one.leases = seed;
    one.digest = "d" + std::to_string(seed);
    return one;
  };
  return out;
}

} // namespace

TEST_CASE("results do not depend on how many threads there are") {
  const std::vector<check> checks = {check_of("a", 1, 1), check_of("b", 1, 2)};
  selfcheck_options options;
  std::set<std::string> texts;
  for (const uint32_t jobs : {1u, 2u, 7u, 1000u}) {
    options.jobs = jobs;
    const auto out = run_checks(checks, options);
    REQUIRE(out);
    CHECK(out->checks[0].passed());
    CHECK_FALSE(out->checks[1].passed());
    CHECK_FALSE(out->passed());
    CHECK(out->checks[0].leases == 210);
    texts.insert(to_text(*out, "1"));
  }
  CHECK(texts.size() == 1);
  CHECK(texts.begin()->find("1 of 2 checks FAIL: b\n") != std::string::npos);
}

TEST_CASE("the digest tells results apart, the hash configurations") {
  selfcheck_options options;
  const auto first = run_checks({check_of("a", 1, 1)}, options);
  const auto other_value = run_checks({check_of("a", 1, 1.0001)}, options);
  CHECK(first->digest != other_value->digest);
  CHECK(first->config_hash == other_value->config_hash);
  auto changed = check_of("a", 1, 1);
  changed.config = "other\n";
  CHECK(run_checks({changed}, options)->config_hash != first->config_hash);
  options.seeds = 21;
  CHECK(run_checks({check_of("a", 1, 1)}, options)->config_hash != first->config_hash);
}

TEST_CASE("a seed without a result fails its check and says why") {
  auto broken = check_of("a", 1, 1);
  broken.run = [run = broken.run](uint64_t seed, mutant_kind mutant) -> result<seed_outcome> {
    if (seed == 3)
      return fail(errc::refused, "the queue grew");
    return run(seed, mutant);
  };
  const auto out = run_checks({broken}, {});
  REQUIRE(out);
  CHECK_FALSE(out->passed());
  CHECK(out->checks[0].error == "seed 3: the queue grew");
  CHECK(to_text(*out, "1").find("NO RESULT: seed 3: the queue grew") != std::string::npos);
}

TEST_CASE("a check that gives too few numbers fails") {
  auto wrong = check_of("a", 1, 1);
  wrong.lines.push_back({"second", 1});
  CHECK_FALSE(run_checks({wrong}, {})->passed());
}

TEST_CASE("progress is told for every seed, and a stop ends it") {
  selfcheck_options options;
  options.jobs = 2;
  size_t told = 0;
  options.progress = [&](size_t done, size_t all) {
    CHECK(all == 40);
    told = std::max(told, done);
  };
  REQUIRE(run_checks({check_of("a", 1, 1), check_of("b", 1, 1)}, options));
  CHECK(told == 40);
  options.progress = nullptr;
  std::atomic<int> asked = 0;
  options.stop = [&] { return ++asked > 5; };
  const auto out = run_checks({check_of("a", 1, 1)}, options);
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::shutting_down);
}

TEST_CASE("unknown checks and numbers of seeds are refused") {
  selfcheck_options options;
  options.only = {"closed-quee"};
  const auto wrong = run_selfcheck(options);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what.find("closed-queue") != std::string::npos);
  options.only = {};
  for (const uint32_t seeds : {0u, 1u, 1001u}) {
    options.seeds = seeds;
    CHECK_FALSE(run_checks({check_of("a", 1, 1)}, options));
  }
}

TEST_CASE("checks have names of their own, and every line a name of its own within its check") {
  for (const bool quick : {false, true}) {
    std::set<std::string> names;
    for (const auto& each : all_checks(quick)) {
      CAPTURE(each.name);
      CHECK(names.insert(each.name).second);
      CHECK_FALSE(each.lines.empty());
      CHECK_FALSE(each.source.empty());
      std::set<std::string> lines;
      for (const auto& line : each.lines) {
        CAPTURE(line.name);
        CHECK(lines.insert(line.name).second);
        CHECK(std::isfinite(line.exact));
      }
    }
  }
}
