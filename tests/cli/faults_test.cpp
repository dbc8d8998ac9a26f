// What happens to a run when somebody kills its processes.

#include "tests/cli/program.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

namespace {

std::vector<std::string> long_run(const std::filesystem::path& out) {
  return {"run", "softmax", "rmsnorm", "--seed", "3", "--budget", "30attempts", "--workers", "2",
    "--out", out.string(), "--json"};
}

/// Kills the first process of that name that shows up, then expects the run to end well all the
/// same.
void kill_one(const std::string& name) {
  CAPTURE(name);
  scratch folder;
  auto out = folder / "run";
  program run(long_run(out));
  bool killed = eventually([&] {
    for (auto pid : processes_in(out / "jobs", name))
      if (kill(pid, SIGKILL) == 0)
        return true;
    return false;
  });
  CHECK(killed);
  int status = run.wait();
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  CHECK(table["clean"] == true);
  for (const auto& row : table["problems"])
    CHECK(row["status"] == "PASSED");
}

} // namespace

TEST_CASE("a killed runner costs one attempt and the run goes on") {
  kill_one("gristmill-runner");
}

TEST_CASE("a killed judge costs one attempt and the run goes on") {
  kill_one("gristmill-judge");
}

TEST_CASE("a killed compiler costs one attempt and the run goes on") {
  kill_one("gristmill-compiler");
}

TEST_CASE("a killed oracle is started again and the run goes on") {
  kill_one("gristmill-oracle");
}

TEST_CASE("an exception in a worker costs one attempt and the run goes on") {
  scratch folder;
  program run(long_run(folder / "run"), {{"GRISTMILL_FAULT", "worker:3"}});
  int status = run.wait();
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  CHECK(table["clean"] == true);
  CHECK(run.err().find("died") != std::string::npos);
}

TEST_CASE("no child outlives a killed main process by two seconds, and the next start cleans up") {
  scratch folder;
  auto out = folder / "killed";
  program run(long_run(out));
  REQUIRE(eventually([&] { return !processes_in(out / "jobs", "gristmill-runner").empty(); }));
  run.signal(SIGKILL);
  CHECK(eventually([&] { return processes_in(out).empty(); }, std::chrono::seconds{2}));
  CHECK(run.wait() == 128 + SIGKILL);
  CHECK_FALSE(std::filesystem::is_empty(out / "jobs"));

  program next({"run", "softmax", "--seed", "3", "--budget", "1attempts", "--out",
    (folder / "next").string(), "--json"});
  next.wait();
  CHECK_FALSE(std::filesystem::exists(out / "jobs"));
  CHECK_FALSE(std::filesystem::exists(out / "data"));
  // What was in the log stays readable.
  program report({"report", out.string(), "--json"});
  CHECK(report.wait() == 0);
}

TEST_CASE("the first interrupt drains and the exit code says so") {
  scratch folder;
  auto out = folder / "run";
  program run(long_run(out));
  REQUIRE(eventually([&] { return !processes_in(out / "jobs", "gristmill-runner").empty(); }));
  run.signal(SIGINT);
  CHECK(run.wait() == 130);
  auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  CHECK(table["ended"] == true);
  CHECK(processes_in(out).empty());
}

TEST_CASE("the second interrupt ends at once") {
  scratch folder;
  auto out = folder / "run";
  program run({"run", "softmax", "--proposer", "scripted", "--candidate",
    source_file("tests/corpus/candidates/endless.cu"), "--out", out.string()});
  REQUIRE(eventually([&] { return !processes_in(out / "jobs", "gristmill-runner").empty(); }));
  run.signal(SIGINT);
  REQUIRE(eventually([&] { return run.err().find("once more") != std::string::npos; }));
  run.signal(SIGINT);
  CHECK(run.wait(std::chrono::seconds{15}) == 130);
  CHECK(processes_in(out).empty());
}
