// The two toolchains give the same verdicts: on candidates that are wrong in one known way each,
// and on what the search tries first on the built-in problems.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace gristmill::test;

namespace {

/// Whether this machine has both; what is missing is said aloud.
bool has_both() {
  program doctor({"doctor", "--json"});
  doctor.wait();
  const auto checks = nlohmann::json::parse(doctor.out());
  bool both = true;
  for (const auto& check : checks["checks"]) {
    const auto name = check["check"].get<std::string>();
    if ((name.find("clang") == std::string::npos && name.find("NVRTC") == std::string::npos)
      || check["fine"] == true)
      continue;
    MESSAGE("SKIPPED: " << check["found"].get<std::string>());
    both = false;
  }
  return both;
}

nlohmann::json table_of(const std::string& toolchain, std::vector<std::string> arguments) {
  scratch folder;
  arguments.insert(arguments.begin(), "run");
  for (const std::string& more : {std::string("--toolchain"), toolchain, std::string("--seed"),
         std::string("1"), std::string("--out"), (folder / "run").string(), std::string("--json")})
    arguments.push_back(more);
  program run(arguments);
  run.wait(std::chrono::seconds{280});
  INFO("stderr: ", run.err());
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  CHECK(table["toolchain"].get<std::string>().starts_with(toolchain));
  return table;
}

} // namespace

TEST_CASE("planted candidates get the same verdicts from both toolchains") {
  if (!has_both())
    return;
  std::vector<std::string> arguments{"softmax", "--proposer", "scripted", "--gpus", "mock:h200:2"};
  for (const char* name : {"right", "wrong", "out_of_bounds", "endless", "does_not_compile",
         "wrong_type", "smuggled_entry", "misaligned"}) {
    arguments.emplace_back("--candidate");
    arguments.push_back(source_file("tests/corpus/candidates/" + std::string(name) + ".cu"));
  }
  const auto statuses = [&](const char* toolchain) {
    const auto table = table_of(toolchain, arguments);
    std::map<std::string, std::string> found;
    for (const auto& row : table["planted"])
      found[row["key"]] = row["status"];
    return found;
  };
  auto by_clang = statuses("clang");
  const auto by_nvrtc = statuses("nvrtc");
  CHECK(by_clang.size() == 8);
  CHECK(by_clang["file/right"] == "PASSED");
  CHECK(by_clang == by_nvrtc);
}

TEST_CASE("baselines and first candidates of built-in problems pass behind both toolchains") {
  if (!has_both())
    return;
  // scripts/compare-toolchains judges any other problem in the same way.
  const std::vector<std::string> arguments{
    "softmax", "rmsnorm", "silu_and_mul", "--budget", "6attempts"};
  for (const char* toolchain : {"clang", "nvrtc"}) {
    CAPTURE(toolchain);
    const auto table = table_of(toolchain, arguments);
    CHECK(table["problems"].size() == 3);
    for (const auto& row : table["problems"]) {
      CAPTURE(row.dump());
      CHECK(row["baseline_ns"].get<uint64_t>() > 0);
      CHECK(row["status"] != "INCORRECT_NUMERICAL");
      CHECK(row["status"] != "COMPILE_ERROR");
      CHECK(row["status"] != "RUNTIME_ERROR");
    }
  }
}

TEST_CASE("a toolchain that is not there is named before anything starts, and auto does without") {
  scratch folder;
  const variables without{{"GRISTMILL_CUDA", "/nonexistent"}};
  program asked(
    {"run", "softmax", "--toolchain", "nvrtc", "--out", (folder / "run").string()}, without);
  CHECK(asked.wait() == 2);
  CHECK(asked.err().find("--toolchain nvrtc") != std::string::npos);
  CHECK(asked.err().find("libnvrtc") != std::string::npos);
  CHECK(asked.err().find("GRISTMILL_CUDA") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "run"));

  program doctor({"doctor", "--json"}, without);
  CHECK(doctor.wait() == 0);
  CHECK(doctor.out().find("NVRTC") != std::string::npos);
}
