// What a person writes wrong is refused before anything runs: exit code 2, and a message that names
// the flag or the file and the nearest valid choice.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

using namespace gristmill::test;

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

const std::string good_definition = R"({"name": "twice", "axes": {"N": {"type": "var"}},
 "inputs": {"x": {"shape": ["N"], "dtype": "float32"}},
 "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
 "reference": "def run(x):\n    return x * 2\n"})";
const std::string good_workload =
  R"({"uuid": "w0", "axes": {"N": 64}, "inputs": {"x": {"type": "random"}}})"
  "\n";

/// Runs and expects exit code 2, the wanted texts on stderr, nothing on stdout and no run
/// directory.
void refused(std::vector<std::string> arguments, const std::vector<std::string>& wanted,
  const variables& environment = {}) {
  scratch folder;
  if (arguments.front() == "run") {
    arguments.push_back("--out");
    arguments.push_back((folder / "run").string());
  }
  program p(arguments, environment);
  CHECK(p.wait(std::chrono::seconds{30}) == 2);
  auto err = p.err();
  CAPTURE(err);
  CHECK(p.out().empty());
  for (const auto& text : wanted) {
    CAPTURE(text);
    CHECK(err.find(text) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
}

} // namespace

TEST_CASE("an unknown flag names the nearest one") {
  refused({"run", "--buget", "10m"}, {"--buget", "--budget"});
}

TEST_CASE("an unknown command names the nearest one") {
  refused({"rum"}, {"rum", "run"});
}

TEST_CASE("no command is refused with the list of commands") {
  refused({"report"}, {"run"});
}

TEST_CASE("an unknown problem names the nearest built-in one") {
  refused({"run", "softmaks"}, {"softmaks", "softmax"});
}

TEST_CASE("a missing folder is named") {
  refused({"run", "./no/such/folder"}, {"./no/such/folder"});
}

TEST_CASE("a problem that is given twice is refused") {
  refused({"run", "softmax", "softmax"}, {"softmax", "already"});
}

TEST_CASE("broken JSON is named with file and line") {
  scratch folder;
  write(folder / "p/definition.json", "{\n \"name\": \"p\",\n oops\n}");
  write(folder / "p/workload.jsonl", good_workload);
  refused({"run", (folder / "p").string()}, {"definition.json:3"});
}

TEST_CASE("a broken workload line is named with file and line") {
  scratch folder;
  write(folder / "p/definition.json", good_definition);
  write(folder / "p/workload.jsonl", good_workload + "\n{\"uuid\": 7\n");
  refused({"run", (folder / "p").string()}, {"workload.jsonl", "3"});
}

TEST_CASE("a rule that fails is named with the path of the field") {
  scratch folder;
  auto text = good_definition;
  text.replace(text.find("float32"), 7, "float31");
  write(folder / "p/definition.json", text);
  write(folder / "p/workload.jsonl", good_workload);
  refused({"run", (folder / "p").string()}, {"inputs.x.dtype", "float31", "float32"});
}

TEST_CASE("an axis that a workload lacks is named") {
  scratch folder;
  write(folder / "p/definition.json", good_definition);
  write(folder / "p/workload.jsonl", R"({"uuid": "w0", "axes": {}, "inputs": {}})");
  refused({"run", (folder / "p").string()}, {"N", "w0"});
}

TEST_CASE("an unreadable budget is answered with examples") {
  refused({"run", "--budget", "10parsecs"}, {"10parsecs", "10m", "500attempts", "gpu-s"});
  refused({"run", "--budget", "10m", "--budget", "20m"}, {"20m"});
  refused({"run", "--budget", "0m"}, {"0m"});
}

TEST_CASE("an unknown device names the nearest model") {
  refused({"run", "--gpus", "mock:h20"}, {"h20", "h200"});
  refused({"run", "--gpus", "mock:h200:0"}, {"0"});
  refused({"run", "--gpus", "cuda:x"}, {"cuda:x", "cuda:0, cuda:all or cuda:GPU-UUID"});
  refused({"run", "--gpus", "cuda:0,mock:h200"}, {"one kind of device"});
  if (std::filesystem::exists("/dev/nvidia0"))
    MESSAGE("SKIPPED: there is a GPU here, so a run without a driver cannot be tried");
  else
    refused({"run", "--gpus", "cuda:0"}, {"--gpus cuda:0: "});
}

TEST_CASE("how candidates are checked and timed is looked at before the start") {
  refused({"run", "--promote", "yes"}, {"--promote yes"});
  refused({"run", "--flush", "official-ish"}, {"--flush official-ish", "did you mean `official`?"});
  refused({"run", "--samples", "20"}, {"--samples", "real devices only"});
  refused({"run", "--rounds", "0"}, {"--rounds", "0"});
  refused({"run", "--rounds", "1000"}, {"--rounds", "100"});
  refused({"run", "--check-elements", "-1"}, {"--check-elements", "-1"});
}

TEST_CASE("sleep devices and the sleep proposer go together only") {
  refused({"run", "--gpus", "sleep:100ms:2"}, {"--proposer sleep"});
  refused({"run", "--proposer", "sleep"}, {"--gpus"});
}

TEST_CASE("unknown choices name the nearest one") {
  refused({"run", "--proposer", "templat"}, {"templat", "template"});
  refused({"run", "--lease-policy", "strid"}, {"strid", "stride"});
  refused({"run", "--toolchain", "clag"}, {"clag", "clang"});
  refused({"run", "--oracle", "touch"}, {"touch", "torch"});
}

TEST_CASE("numbers that are none are refused") {
  refused({"run", "--workers", "many"}, {"--workers", "many"});
  refused({"run", "--workers", "0"}, {"--workers"});
  refused({"run", "--seed", "-1"}, {"--seed"});
  refused({"run", "--seed", "99999999999999999999999"}, {"--seed"});
}

TEST_CASE("no compiler on the PATH is named with its cure") {
  refused({"run", "softmax"}, {"clang-19", "NVRTC"},
    {{"PATH", "/nowhere"}, {"GRISTMILL_CUDA", "/nowhere"}});
}

TEST_CASE("candidates are checked before the run") {
  refused({"run", "softmax", "--candidate", "nothing.cu"}, {"nothing.cu"});
  refused({"run", "--candidate", source_file("tests/corpus/candidates/right.cu")}, {"PROBLEM="});
  refused({"run", "softmax", "--candidate", "softmux=x.cu"}, {"softmux", "softmax"});
  refused({"run", "softmax", "--candidate", "x.cpp"}, {".cu"});
  refused({"run", "softmax", "--proposer", "scripted"}, {"--candidate"});
}

TEST_CASE("a configuration file is checked with line and nearest key") {
  scratch folder;
  write(folder / "g.toml", "[run]\nworkers = 2\ngpu = \"mock:h200\"\n");
  refused({"run", "--config", (folder / "g.toml").string()}, {"g.toml:3", "run.gpu", "gpus"});
  write(folder / "h.toml", "[run]\nworkers = \"two\"\n");
  refused({"run", "--config", (folder / "h.toml").string()}, {"h.toml:2", "run.workers"});
  refused({"run", "--config", (folder / "none.toml").string()}, {"none.toml"});
}

TEST_CASE("an environment variable is checked and named") {
  refused({"run"}, {"GRISTMILL_WORKERS", "few"}, {{"GRISTMILL_WORKERS", "few"}});
}

TEST_CASE("a bounds table is checked") {
  scratch folder;
  write(folder / "b.json", "{\"schema\": \"gristmill.bounds/1\"}");
  refused({"run", "softmax", "--bounds", (folder / "b.json").string()}, {"b.json", "source"});
}

TEST_CASE("a folder that is no run directory cannot be reported") {
  scratch folder;
  write(folder / "x/y", "");
  refused({"report", (folder / "x").string()}, {"run.db"});
}

TEST_CASE("a run directory that exists is not written to") {
  scratch folder;
  write(folder / "taken/keep.txt", "mine");
  program p({"run", "softmax", "--out", (folder / "taken").string()});
  CHECK(p.wait() == 2);
  CHECK(p.err().find("exists") != std::string::npos);
  CHECK(std::filesystem::exists(folder / "taken/keep.txt"));
}

TEST_CASE("doctor and the list of problems answer") {
  program doctor({"doctor"});
  CHECK(doctor.wait() == 0);
  CHECK(doctor.out().find("clang-19") != std::string::npos);
  program list({"problem", "list"});
  CHECK(list.wait() == 0);
  CHECK(list.out().find("softmax") != std::string::npos);
  program version({"--version"});
  CHECK(version.wait() == 0);
  CHECK(version.out().find("gristmill") != std::string::npos);
}
