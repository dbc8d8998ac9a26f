// `gristmill audit RUN --sanitize`: the interpreter's own checks, and a program that stands in for
// compute-sanitizer.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct answer {
  int code = 0;
  std::string out;
  std::string err;
};

answer run_program(std::vector<std::string> arguments, const variables& environment = {}) {
  program p(std::move(arguments), environment);
  const int code = p.wait(std::chrono::seconds{300});
  return {code, p.out(), p.err()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// One run of the tiny problem for all tests of this file, copied for each: the attempts are 1
/// right, 2 racy and right by luck, 3 out of bounds.
struct sanitized_run {
  scratch folder;
  std::string run;
  fs::path temporary;

  sanitized_run() : run((folder / "run").string()), temporary(folder / "tmp") {
    fs::create_directories(temporary);
    static scratch once;
    const auto made = once / "run";
    if (!fs::exists(made)) {
      const auto problem = once / "tiny";
      fs::create_directories(problem);
      for (const char* file : {"definition.json", "graph.json"})
        fs::copy_file(source_file(std::string("kernels/builtin/softmax/") + file), problem / file);
      std::ofstream(problem / "workload.jsonl")
        << R"({"axes":{"rows":5,"classes":33},"inputs":{"logits":{"type":"random"}},)"
           R"("uuid":"only","tolerance":{"max_atol":1e-06,"max_rtol":0.0001}})"
           "\n";
      std::vector<std::string> arguments = {"run", problem.string(), "--proposer", "scripted",
        "--seed", "1", "--gpus", "mock:h200:1", "--workers", "1", "--oracle", "native",
        "--toolchain", "clang", "--out", made.string()};
      for (const char* name : {"right", "shares_unguarded", "out_of_bounds"}) {
        arguments.emplace_back("--candidate");
        arguments.push_back(source_file(std::string("tests/corpus/candidates/") + name + ".cu"));
      }
      const auto ran = run_program(arguments);
      INFO(ran.err);
      REQUIRE((ran.code == 0 || ran.code == 3));
    }
    fs::copy(made, run, fs::copy_options::recursive);
  }

  answer audit(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"audit", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(std::move(arguments), {{"TMPDIR", temporary.string()}});
  }

  /// The stand-in, told how to behave.
  std::string sanitizer(const std::string& behaviour) const {
    const auto program = folder / "compute-sanitizer";
    fs::copy_file(source_file("tests/cli/fake_compute_sanitizer.py"), program,
      fs::copy_options::overwrite_existing);
    std::ofstream(folder / "behaviour") << behaviour;
    return program.string();
  }

  size_t records() const {
    size_t count = 0;
    if (fs::exists(run + "/sanitizer"))
      for (const auto& each : fs::directory_iterator(run + "/sanitizer"))
        count += each.path().extension() == ".json" ? 1 : 0;
    return count;
  }
};

} // namespace

TEST_CASE("on a mock a race that is right by luck is found, named, kept, shown and refused") {
  const sanitized_run at;
  auto said = at.audit({"tiny/cuda/2", "--sanitize", "--gpus", "mock:h200"});
  INFO(said.out, said.err);
  CHECK(said.code == 4);
  CHECK(has(said.out, "memcheck   clean"));
  CHECK(has(said.out, "racecheck  found"));
  CHECK(has(said.out, "shared memory race"));
  CHECK(has(said.out, "`kernel`"));
  CHECK(has(said.out, "synccheck  clean"));
  CHECK(has(said.out, "initcheck  clean"));
  CHECK(at.records() == 1);

  // The log is as it was, and the rules of today refuse the candidate.
  CHECK(run_program({"log", "verify", at.run}).code == 0);
  const auto again = run_program({"rescore", at.run});
  INFO(again.out);
  CHECK(again.code == 7);
  CHECK(has(again.out, "PASSED -> RUNTIME_ERROR"));
  CHECK(has(again.out, "now found: sanitizer"));
  CHECK(has(again.out, "1 come out otherwise"));

  // A record that was changed afterwards is refused.
  for (const auto& each : fs::directory_iterator(at.run + "/sanitizer"))
    std::ofstream(each.path(), std::ios::app) << " ";
  const auto changed = run_program({"rescore", at.run});
  CHECK(changed.code != 0);
  CHECK(has(changed.err, "its content is not what its name says"));
}

TEST_CASE("on a mock an access out of bounds is memcheck's, and the other tools did not look") {
  const sanitized_run at;
  const auto said =
    at.audit({"tiny/cuda/3", "--sanitize", "memcheck,racecheck", "--gpus", "mock:h200", "--json"});
  INFO(said.out, said.err);
  CHECK(said.code == 4);
  const auto looks = json::parse(said.out)["records"][0]["looks"];
  REQUIRE(looks.size() == 2);
  CHECK(looks[0]["tool"] == "memcheck");
  CHECK(looks[0]["end"] == "found");
  CHECK(looks[0]["findings"][0]["kind"] == "out of bounds");
  CHECK(looks[1]["end"] == "did_not_look");
  CHECK(has(looks[1]["why"], "did not come to its end"));
}

TEST_CASE("the incumbents are clean, and a clean look changes no verdict") {
  const sanitized_run at;
  auto said = at.audit({"--sanitize", "--incumbents", "--gpus", "mock:h200", "--json"});
  INFO(said.out, said.err);
  const auto record = json::parse(said.out)["records"].at(0);
  CHECK(record["same_code"] == true);
  CHECK(record["workloads"] == json::array({"only"}));
  const bool is_clean = said.code == 0;
  said = run_program({"rescore", at.run});
  CHECK(said.code == (is_clean ? 0 : 7));
}

TEST_CASE("through a sanitizer: clean, found, and each way not to look") {
  const sanitized_run at;
  const auto look = [&](const std::string& how, const std::string& limit = "60s") {
    return at.audit(
      {"tiny/cuda/1", "--sanitize", "memcheck", "--gpus", "mock:h200", "--sanitizer-program",
        at.sanitizer(how), "--limit", limit, "--reports", (at.folder / "reports").string()});
  };
  auto said = look("clean");
  INFO(said.out, said.err);
  CHECK(said.code == 0);
  CHECK(has(said.out, "memcheck   clean"));
  CHECK(has(said.out, "compute-sanitizer 9.1.0"));
  CHECK(fs::file_size(at.folder / "reports/tiny-cuda-1-report-memcheck.txt") > 0);

  said = look("unsupported");
  CHECK(said.code == 1);
  CHECK(has(said.out, "did not look: Device not supported"));
  said = look("silent");
  CHECK(said.code == 1);
  CHECK(has(said.out, "did not look: the report has no summary"));
  said = look("crashes");
  CHECK(said.code == 1);
  CHECK(has(said.out, "did not look: no report of compute-sanitizer was written"));
  said = look("hangs", "2s");
  CHECK(said.code == 1);
  CHECK(has(said.out, "did not look: over the limit of 2s"));
  CHECK(eventually([&] { return processes_in(at.temporary, "sleep").empty(); }));
  CHECK(fs::is_empty(at.temporary));
  // Nothing was found, so nothing is refused.
  CHECK(run_program({"rescore", at.run}).code == 0);

  said = look("finds");
  CHECK(said.code == 4);
  CHECK(has(said.out, "Invalid __global__ write of size 4 bytes in `kernel`"));
  CHECK(has(said.out, "3 times"));
  said = at.audit({"tiny/cuda/1"});
  CHECK(said.code == 0);
  CHECK(has(said.out, "FIRED  refusal    sanitizer"));
  CHECK(has(said.out, "RUNTIME_ERROR"));
  // What was found stays, whatever a later look says.
  CHECK(look("clean").code == 0);
  said = run_program({"rescore", at.run});
  CHECK(said.code == 7);
  CHECK(at.records() == 7);
}

TEST_CASE("bad input is told with what would do") {
  const sanitized_run at;
  auto said = at.audit({"tiny/cuda/1", "--sanitize", "memchek", "--gpus", "mock:h200"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "did you mean `memcheck`"));
  said = at.audit({"tiny/cuda/1", "--sanitize"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "--gpus is missing"));
  said = at.audit({"tiny/cuda/1", "--gpus", "mock:h200"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "belong to --sanitize"));
  said = at.audit({});
  CHECK(said.code == 2);
  CHECK(has(said.err, "ATTEMPT is missing"));
  said = at.audit({"tiny/cuda/7", "--sanitize", "--gpus", "mock:h200"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "no evidence is kept of attempt tiny/cuda/7"));
  said = at.audit({"tiny/cuda/1", "--incumbents", "--sanitize", "--gpus", "mock:h200"});
  CHECK(said.code == 2);
  said = at.audit({"tiny/cuda/1", "--sanitize", "--gpus", "mock:h200", "--limit", "soon"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "--limit soon"));
  said = at.audit({"tiny/cuda/1", "--sanitize", "--gpus", "mock:h200:2"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "one device is needed"));
  said = at.audit({"tiny/cuda/1", "--sanitize", "--gpus", "mock:h200", "--sanitizer-program",
    (at.folder / "no-such").string()});
  CHECK(said.code == 2);
  CHECK(has(said.err, "--sanitizer-program"));
  CHECK(has(said.err, "no such program"));
  // Another model is told for the candidate, because nothing of it was looked at.
  said = at.audit({"tiny/cuda/1", "--sanitize", "memcheck", "--gpus", "mock:a100"});
  CHECK(said.code == 1);
  CHECK(has(said.out, "is another model"));
  CHECK(at.records() == 1);
}
