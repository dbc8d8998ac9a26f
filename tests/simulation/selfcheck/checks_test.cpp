#include "simulation/selfcheck/selfcheck.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace gristmill;

namespace {

selfcheck_outcome outcome_of(mutant_kind mutant, std::vector<std::string> only) {
  selfcheck_options options;
  options.quick = true;
  options.jobs = 2;
  options.mutant = mutant;
  options.only = std::move(only);
  auto out = run_selfcheck(options);
  REQUIRE(out);
  return *out;
}

std::set<std::string> failed_of(const selfcheck_outcome& what) {
  std::set<std::string> out;
  for (const auto& each : what.checks)
    if (!each.passed())
      out.insert(each.name);
  return out;
}

} // namespace

TEST_CASE("the simulator agrees with every quick closed form") {
  const auto out = outcome_of(mutant_kind::none, {});
  CAPTURE(to_text(out, "test"));
  CHECK(out.passed());
  CHECK(out.checks.size() == all_checks(true).size());
}

TEST_CASE("serving the newest first is found by the distribution of waits, not by means") {
  const auto out = outcome_of(mutant_kind::lifo, {"saturated-queue", "shortest-first"});
  CHECK(failed_of(out) == std::set<std::string>{"saturated-queue", "shortest-first"});
  for (const auto& line : out.checks.front().lines)
    if (line.name == "leases/s" || line.name == "utilisation")
      CHECK(line.verdict == line_verdict::pass);
}

TEST_CASE("a lost wake-up is found") {
  const auto out =
    outcome_of(mutant_kind::lost_wakeup, {"saturated-queue", "work-conserving", "one-gpu"});
  CHECK(failed_of(out).contains("work-conserving"));
  CHECK(failed_of(out).contains("one-gpu"));
  for (const auto& each : out.checks)
    if (each.name == "work-conserving")
      for (const auto& line : each.lines) {
        CAPTURE(line.name);
        CHECK(line.verdict == line_verdict::off);
      }
}

TEST_CASE("a free GPU that is ignored is found") {
  const auto out = outcome_of(mutant_kind::ignore_free_gpu, {"saturated-queue", "work-conserving"});
  CHECK(failed_of(out) == std::set<std::string>{"saturated-queue", "work-conserving"});
}
