// `gristmill baseline` as a user starts it, with a program that answers as the measuring script
// does in place of Python: what is measured is for docs/results-h200.md, not for a test.

#include "tests/cli/document_files.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace gristmill::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* answers = R"sh(#!/bin/sh
mode=$(sed -n 's/^ "mode": "\(.*\)",*$/\1/p' "$3")
numbers() { echo "{\"median\": $1, \"mad\": 1, \"min\": 1, \"max\": 99999999, \"samples\": 50}"; }
timed() { echo "{\"status\": \"timed\", \"device\": \"fake\", \"torch\": \"2\", \"device_ns\": $(numbers $1), \"span_ns\": $(numbers $1)}"; }
echo '{"ready": true}'
read go || exit 1
case $mode in
  rates) echo '{"status": "timed", "rates": {"bytes_per_second": 1e12, "macs_per_second": {"fp32": 1e13}}}';;
  eager) timed 9000000;;
  compile) timed 5000000;;
  graph) kill -9 $$;;
  max-autotune) sleep 1000;;
  *) echo '{"status": "failed", "reason": "wrong: nothing is right"}';;
esac
)sh";

struct work_folder {
  fs::path folder;
  work_folder() {
    auto name = (fs::temp_directory_path() / "gristmill-baseline-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    std::ofstream(folder / "python") << answers;
    fs::permissions(folder / "python", fs::perms::owner_all);
  }
  ~work_folder() { fs::remove_all(folder); }
  std::string python() const { return (folder / "python").string(); }
  std::string out() const { return (folder / "bounds.json").string(); }
};

} // namespace

TEST_CASE("modes that fail, die or take too long are told and left out, and the fastest counts") {
  const work_folder here;
  const auto done = ended({"baseline", "rmsnorm", "--gpus", "cpu", "--python", here.python(),
    "--limit", "1s", "-o", here.out()});
  CHECK_MESSAGE(done.code == 0, done.err);
  std::ifstream in(here.out());
  const auto table = nlohmann::json::parse(in);
  CHECK(table["schema"] == "gristmill.bounds/3");
  CHECK(table["clock"].get<std::string>().starts_with("NOT A MEASUREMENT"));
  const auto& workloads = table["problems"]["rmsnorm"]["workloads"];
  CHECK(workloads.size() == 3);
  for (const auto& row : workloads) {
    CHECK(row["t_b_ns"] == 5e6);
    CHECK(row["baseline"]["winner"] == "compile");
    REQUIRE(row["baseline"]["modes"].size() == 4);
    CHECK(row["baseline"]["modes"][0]["device_ns"]["median"] == 9e6);
    CHECK(row["baseline"]["modes"][2]["reason"].get<std::string>().find("without an answer")
      != std::string::npos);
    CHECK(row["baseline"]["modes"][3]["reason"] == "over the limit of 1s");
  }
  const auto again =
    ended({"baseline", "rmsnorm", "--gpus", "cpu", "--python", here.python(), "-o", here.out()});
  CHECK(again.code == 2);
  CHECK(again.err.find("is there already") != std::string::npos);
}

TEST_CASE("code of an agent is one more mode under the same check") {
  const work_folder here;
  const auto done =
    ended({"baseline", "softmax", "--gpus", "cpu", "--python", here.python(), "--modes", "eager",
      "-o", here.out(), "--by-agent", "test -f reference.py -a -f TASK.md && touch improved.py"});
  CHECK_MESSAGE(done.code == 0, done.err);
  std::ifstream in(here.out());
  const auto table = nlohmann::json::parse(in);
  for (const auto& row : table["problems"]["softmax"]["workloads"]) {
    CHECK(row["baseline"]["winner"] == "eager");
    CHECK(row["baseline"]["modes"][1]["mode"] == "agent");
    CHECK(row["baseline"]["modes"][1]["reason"] == "wrong: nothing is right");
  }
}

TEST_CASE("an interpreter without a slash is looked for on the PATH") {
  const work_folder here;
  fs::rename(here.folder / "python", here.folder / "python-of-this-test");
  std::ofstream(here.folder / "python-of-nobody") << "not executable";
  const auto ask = [&](const std::string& python) {
    program run({"baseline", "softmax", "--gpus", "cpu", "--modes", "eager", "--python", python},
      {{"PATH", here.folder.string() + ":/usr/bin:/bin"}});
    const int code = run.wait();
    return std::pair{code, run.out() + run.err()};
  };
  const auto [code, said] = ask("python-of-this-test");
  CHECK_MESSAGE(code == 0, said);
  for (const std::string wrong : {"python-of-nobody", "python-that-is-nowhere"}) {
    const auto [status, why] = ask(wrong);
    CHECK(status == 2);
    CHECK(why.find("--python " + wrong + ": no such program") != std::string::npos);
  }
}

TEST_CASE("after the deadline no mode begins, and a workload without a time has no baseline") {
  const work_folder here;
  const auto done = ended({"baseline", "softmax", "--gpus", "cpu", "--python", here.python(),
    "--modes", "eager", "--deadline", "1ns", "-o", here.out()});
  CHECK(done.code == 1);
  CHECK(done.err.find("no mode was timed") != std::string::npos);
}

TEST_CASE("a table is extended in its place, and what was timed is not measured again") {
  const work_folder here;
  std::ofstream(here.folder / "rates.json")
    << R"({"status": "timed", "rates": {"bytes_per_second": 1e12, "macs_per_second": {"fp32": 1e13}}})";
  const auto rates = (here.folder / "rates.json").string();
  const auto measure = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
      {"baseline", "softmax", "--gpus", "cpu", "--python", here.python(), "--rates", rates, "-o",
        here.out()});
    return ended(flags);
  };
  const auto first = measure({"--modes", "eager"});
  CHECK_MESSAGE(first.code == 0, first.err);
  const auto second = measure({"--modes", "eager,compile", "--extend", here.out()});
  CHECK_MESSAGE(second.code == 0, second.err);
  CHECK(second.err.find(" eager: ") == std::string::npos);
  CHECK(second.err.find(" compile: 5000.00 us") != std::string::npos);
  std::ifstream in(here.out());
  const auto table = nlohmann::json::parse(in);
  for (const auto& row : table["problems"]["softmax"]["workloads"]) {
    CHECK(row["baseline"]["winner"] == "compile");
    CHECK(row["baseline"]["modes"].size() == 2);
  }
  const auto other = measure({"--samples", "20", "--extend", here.out()});
  CHECK(other.code == 2);
  CHECK(other.err.find("provenance.samples") != std::string::npos);
}

TEST_CASE("what cannot be measured is refused with the nearest valid choice") {
  const work_folder here;
  const auto refusal = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "baseline");
    flags.insert(flags.end(), {"--python", here.python()});
    const auto done = ended(flags);
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK(refusal({"rmsnorm", "--gpus", "mock:h200"}).find("no baseline to measure there")
    != std::string::npos);
  CHECK(refusal({"rmsnorm", "--gpus", "cuda"}).find("cuda:0") != std::string::npos);
  CHECK(refusal({"rmsnorm", "--gpus", "cpu", "--modes", "compiel"}).find("`compile`")
    != std::string::npos);
  CHECK(refusal({"rmsnrm", "--gpus", "cpu"}).find("rmsnorm") != std::string::npos);
  CHECK(refusal({"rmsnorm", "--gpus", "cpu", "--extend", "x.json"}).find("needs --rates")
    != std::string::npos);
  CHECK(refusal({"--gpus", "cpu"}).find("no problem given") != std::string::npos);
  CHECK(refusal({"rmsnorm", "--gpus", "cpu", "--roofline"}).find("takes no problems")
    != std::string::npos);
  CHECK(
    refusal({"rmsnorm", "--gpus", "cpu", "--limit", "700s"}).find("600 s") != std::string::npos);
  CHECK(
    refusal({"rmsnorm", "--gpus", "cpu", "--flush", "cleen"}).find("clean") != std::string::npos);
}
