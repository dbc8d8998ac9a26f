// Candidates that are right on the run's sets and wrong elsewhere: on the mock GPU with promotions.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill::test;

namespace {

/// A softmax of one small workload, with the graph and the native reference of the built-in one.
std::string small_softmax(const scratch& folder) {
  const auto place = folder / "softmax";
  std::filesystem::create_directories(place);
  for (const char* name : {"definition.json", "graph.json"})
    std::filesystem::copy_file(
      source_file(std::string("kernels/builtin/softmax/") + name), place / name);
  std::ofstream{place / "workload.jsonl"}
    << R"({"axes":{"rows":128,"classes":256},"inputs":{"logits":{"type":"random"}},"uuid":"w",)"
    << R"("tolerance":{"max_atol":1e-06,"max_rtol":0.0001,"required_matched_ratio":1.0}})"
    << "\n";
  return place.string();
}

struct ended_run {
  int status = -1;
  nlohmann::json table;
  std::vector<nlohmann::json> events;
  std::string told;

  std::vector<nlohmann::json> of(const std::string& kind, const std::string& key) const {
    std::vector<nlohmann::json> out;
    for (const auto& e : events)
      if (e["kind"] == kind && e["data"].value("key", std::string{}) == key)
        out.push_back(e);
    return out;
  }
};

ended_run run_with(const std::vector<std::string>& names, const std::string& promote) {
  scratch folder;
  std::vector<std::string> arguments{"run", small_softmax(folder), "--proposer", "scripted",
    "--seed", "1", "--gpus", "mock:h200:1", "--workers", "1", "--promote", promote, "--rounds", "2",
    "--out", (folder / "run").string(), "--json"};
  for (const auto& name : names) {
    arguments.push_back("--candidate");
    arguments.push_back(source_file("tests/corpus/promotion/" + name + ".cu"));
  }
  ended_run out;
  program run(arguments);
  out.status = run.wait();
  out.told = run.err();
  INFO("stderr: ", out.told);
  out.table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(out.table.is_discarded());
  program log({"log", "show", (folder / "run").string(), "--json"});
  REQUIRE(log.wait() == 0);
  std::istringstream lines(log.out());
  for (std::string line; std::getline(lines, line);)
    out.events.push_back(nlohmann::json::parse(line));
  program verified({"log", "verify", (folder / "run").string()});
  CHECK(verified.wait() == 0);
  for (const char* data : {"data/inputs", "data/references"})
    CHECK_FALSE(std::filesystem::exists(folder / (std::string("run/") + data)));
  return out;
}

} // namespace

TEST_CASE(
  "a better candidate is promoted, and those that are wrong elsewhere are refused by case") {
  const auto run = run_with({"barely", "overflows", "one_width", "better"}, "on");
  CAPTURE(run.told);
  CHECK(run.status == 0);
  REQUIRE(run.of("screened", "file/better").size() == 1);
  const auto better = run.of("verdict", "file/better");
  REQUIRE(better.size() == 1);
  CHECK(better[0]["data"]["status"] == "PASSED");
  CHECK(better[0]["data"]["promotion"] == true);
  CHECK(better[0]["data"]["incumbent_stays"] == false);
  CHECK_FALSE(better[0]["data"]["workloads"][0]["blocks"].empty());
  CHECK(better[0]["data"]["workloads"][0]["calls"] > 5);

  // Less than one per cent faster than the baseline.
  const auto barely = run.of("verdict", "file/barely");
  REQUIRE(run.of("screened", "file/barely").size() == 1);
  REQUIRE(barely.size() == 1);
  CHECK(barely[0]["data"]["status"] == "PASSED");
  CHECK(barely[0]["data"]["incumbent_stays"] == true);
  CHECK(barely[0]["reason"].get<std::string>().find("the incumbent stays") == 0);

  const auto overflows = run.of("verdict", "file/overflows");
  REQUIRE(run.of("screened", "file/overflows").size() == 1);
  REQUIRE(overflows.size() == 1);
  CHECK(overflows[0]["data"]["status"] == "INCORRECT_NUMERICAL");
  CHECK(
    overflows[0]["reason"].get<std::string>().find("held-out, large values") != std::string::npos);

  const auto one_width = run.of("verdict", "file/one_width");
  REQUIRE(run.of("screened", "file/one_width").size() == 1);
  REQUIRE(one_width.size() == 1);
  CHECK(one_width[0]["data"]["status"] == "INCORRECT_NUMERICAL");
  CHECK(one_width[0]["reason"].get<std::string>().find("neighbour classes=") != std::string::npos);

  CHECK(run.table["problems"][0]["key"] == "file/better");
  CHECK(run.of("verdict", "plain").empty());
}

TEST_CASE("without promotions the same candidates are judged by the run's own sets alone") {
  const auto run = run_with({"overflows", "one_width"}, "off");
  for (const char* key : {"file/overflows", "file/one_width"}) {
    CHECK(run.of("screened", key).empty());
    const auto verdicts = run.of("verdict", key);
    REQUIRE(verdicts.size() == 1);
    CHECK(verdicts[0]["data"]["status"] == "PASSED");
    CHECK_FALSE(verdicts[0]["data"].contains("promotion"));
  }
}
