// Candidates that are wrong in one known way each, given by file: the run tells them apart and
// survives them all.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

namespace {

struct told {
  std::string status;
  std::string reason;
};

/// Runs the candidates on the built-in softmax and nothing else.
std::map<std::string, told> judge(const std::vector<std::string>& names, int& exit_status) {
  scratch folder;
  std::vector<std::string> arguments = {"run", "softmax", "--proposer", "scripted", "--seed", "1",
    "--gpus", "mock:h200:1", "--out", (folder / "run").string(), "--json"};
  for (const auto& name : names) {
    arguments.push_back("--candidate");
    arguments.push_back(source_file("tests/corpus/candidates/" + name + ".cu"));
  }
  program run(arguments);
  exit_status = run.wait();
  INFO("stderr: ", run.err());
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  std::map<std::string, told> out;
  for (const auto& row : table["planted"])
    out[row["key"].get<std::string>()] = {row["status"], row["reason"]};
  return out;
}

} // namespace

TEST_CASE("planted candidates are told apart, and the run survives them all") {
  int status = -1;
  auto verdicts = judge({"right", "wrong", "out_of_bounds", "endless", "does_not_compile",
                          "wrong_type", "smuggled_entry", "misaligned"},
    status);
  CHECK((status == 0 || status == 3));
  REQUIRE(verdicts.size() == 8);

  CHECK(verdicts["file/right"].status == "PASSED");

  CHECK(verdicts["file/wrong"].status == "INCORRECT_NUMERICAL");

  const auto& bounds = verdicts["file/out_of_bounds"];
  CHECK(bounds.status == "RUNTIME_ERROR");
  CHECK(bounds.reason.find("out of bounds") != std::string::npos);
  CHECK(bounds.reason.find("PTX line") != std::string::npos);

  CHECK(verdicts["file/misaligned"].status == "RUNTIME_ERROR");
  CHECK(verdicts["file/misaligned"].reason.find("multiple") != std::string::npos);

  CHECK(verdicts["file/endless"].status == "TIMEOUT");
  CHECK(verdicts["file/endless"].reason.find("instruction") != std::string::npos);

  const auto& broken = verdicts["file/does_not_compile"];
  CHECK(broken.status == "COMPILE_ERROR");
  CHECK(broken.reason.find("there_is_no_such_function") != std::string::npos);
  CHECK(broken.reason.find("kernel.cu:3") != std::string::npos);
  CHECK(broken.reason.find("/tmp") == std::string::npos);
  CHECK(broken.reason.find("/jobs/") == std::string::npos);

  const auto& type = verdicts["file/wrong_type"];
  CHECK(type.status == "COMPILE_ERROR");
  CHECK(type.reason.find("rows") != std::string::npos);

  const auto& smuggled = verdicts["file/smuggled_entry"];
  CHECK(smuggled.status != "PASSED");
  CHECK(smuggled.reason.find("smuggled") != std::string::npos);
}
