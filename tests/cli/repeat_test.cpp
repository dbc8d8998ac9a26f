// Equal configuration, seed, compiler and one worker: equal digests.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

namespace {

nlohmann::json run_once(const std::string& seed) {
  scratch folder;
  program run({"run", "--seed", seed, "--workers", "1", "--toolchain", "clang", "--budget",
    "12attempts", "--out", (folder / "run").string(), "--json"});
  int status = run.wait();
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  return table;
}

} // namespace

TEST_CASE("two runs of one seed with one worker have the same digest") {
  auto first = run_once("42");
  auto second = run_once("42");
  MESSAGE("digest of seed 42: " << first["digest"].get<std::string>());
  CHECK(first["digest"] == second["digest"]);
  CHECK(first["summary"]["attempts"] == 12);
}

TEST_CASE("another seed gives another digest") {
  CHECK(run_once("42")["digest"] != run_once("43")["digest"]);
}

TEST_CASE("the report command prints the table of the run again, from the log alone") {
  scratch folder;
  auto out = folder / "run";
  program run({"run", "softmax", "--seed", "5", "--budget", "3attempts", "--out", out.string()});
  run.wait();
  program report({"report", out.string()});
  CHECK(report.wait() == 0);
  // The run prints the same and, after it, where its directory is.
  CHECK(run.out().starts_with(report.out()));
  CHECK(report.out().find("softmax") != std::string::npos);
  CHECK(report.out().find("MODELLED") != std::string::npos);
}
