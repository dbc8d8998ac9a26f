// Every verb against every kind of mistake: exit code 2, a message that names the field and the
// nearest valid choice, and nothing made or lost.

#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace gristmill::test;
namespace fs = std::filesystem;

namespace {

struct mistake {
  std::vector<std::string> arguments;
  /// Each must stand in what the program says.
  std::vector<std::string> wanted;
  variables environment = {};
};

/// A folder to make mistakes in, which is the working folder of the programs while it lives.
class workshop {
public:
  workshop() : before_(fs::current_path()), folder_(scratch_ / "w") {
    fs::create_directories(folder_ / "folder/inner");
    fs::create_directories(folder_ / "bad_problem");
    fs::create_directories(folder_ / "worse_problem");
    write("text", "plain text\n");
    write("broken.json", "{\n");
    write("empty.json", "{}\n");
    write("broken.toml", "[run\n");
    write("unknown_key.toml", "[run]\nworkers = 2\ngpu = \"mock:h200\"\n");
    write("unknown_table.toml", "[runs]\n");
    write("wrong_type.toml", "[run]\nworkers = \"two\"\n");
    write("large.toml", "[run]\nworkers = 99999999999\n");
    write("bad_problem/definition.json", "{\"name\": 1}\n");
    write("bad_problem/workload.jsonl", "\n");
    write("worse_problem/definition.json", "{\n");
    write("folder/keep.txt", "mine\n");
    fs::current_path(folder_);
  }
  workshop(const workshop&) = delete;
  workshop& operator=(const workshop&) = delete;
  ~workshop() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
  }

  /// Path and content of everything in it.
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      std::ostringstream text;
      if (entry.is_regular_file())
        text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      all[entry.path().lexically_relative(folder_).string()] = text.str();
    }
    return all;
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  const fs::path& folder() const { return folder_; }

private:
  fs::path before_;
  scratch scratch_;
  fs::path folder_;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words)
    text += " " + word;
  return text;
}

void refuse_all(const std::vector<mistake>& mistakes) {
  const workshop shop;
  const auto before = shop.content();
  for (const auto& one : mistakes) {
    const auto command = joined(one.arguments);
    CAPTURE(command);
    program p(one.arguments, one.environment);
    CHECK(p.wait(std::chrono::seconds{60}) == 2);
    const auto said = p.err() + p.out();
    CAPTURE(said);
    CHECK_FALSE(said.empty());
    for (const auto& text : one.wanted) {
      CAPTURE(text);
      CHECK(said.find(text) != std::string::npos);
    }
  }
  CHECK(shop.content() == before);
}

/// What every verb that takes a run directory refuses in the same way.
const std::vector<std::vector<std::string>> run_verbs{
  {"report"}, {"resume"}, {"log", "show"}, {"log", "verify"}, {"leases"}, {"export"}};

} // namespace

TEST_CASE("an unknown flag is named by every verb, with the nearest one") {
  refuse_all({{{"run", "--buget", "10m"}, {"--buget", "--budget"}},
    {{"run", "--keepgoing"}, {"--keepgoing", "--keep-going"}},
    {{"resume", "folder", "--jsn"}, {"--jsn", "--json"}},
    {{"report", "--jsn"}, {"--jsn", "--json"}},
    {{"log", "show", "folder", "--knd", "x"}, {"--knd", "--kind"}},
    {{"log", "verify", "folder", "--hlp"}, {"--hlp", "--help"}},
    {{"leases", "folder", "--jsn"}, {"--jsn", "--json"}},
    {{"doctor", "--pyton", "x"}, {"--pyton", "--python"}},
    {{"problem", "list", "--jsn"}, {"--jsn", "--json"}},
    {{"problem", "check", "--jsn"}, {"--jsn", "--json"}},
    {{"problem", "show", "softmax", "--jsn"}, {"--jsn", "--json"}},
    {{"problem", "reference", "softmax", "--workloads", "all"}, {"--workloads", "--workload"}},
    {{"solution", "check", "--problm", "x", "text"}, {"--problm", "--problem"}},
    {{"trace", "check", "--jsn"}, {"--jsn", "--json"}},
    {{"convert", "--ot", "x", "empty.json"}, {"--ot", "--out"}},
    {{"broker", "--gpu", "sleep:1"}, {"--gpu", "--gpus"}},
    {{"broker", "status", "--scket", "x"}, {"--scket", "--socket"}},
    {{"lease", "--clas", "timing", "--", "true"}, {"--clas", "--class"}},
    {{"score", "--bouns", "x", "text"}, {"--bouns", "--bounds"}},
    {{"export", "folder", "--ot", "x"}, {"--ot", "--out"}},
    {{"--verson"}, {"--verson", "--version"}}});
}

TEST_CASE("an unknown command is named with the nearest one, also inside of a group") {
  refuse_all({{{"rum"}, {"rum", "run"}}, {{"problem", "lst"}, {"lst", "list"}},
    {{"log", "sho"}, {"sho", "show"}}, {{"solution", "chek"}, {"chek", "check"}},
    {{"trace", "chek"}, {"chek", "check"}}, {{"broker", "statu"}, {"statu", "status"}},
    {{"report", "folder", "extra"}, {"extra"}}, {{"doctor", "extra"}, {"extra"}},
    {{"lease", "extra"}, {"extra", "--"}}});
}

TEST_CASE("what is missing is named: commands, arguments and values of flags") {
  std::vector<mistake> all{{{}, {"command is missing", "run"}},
    {{"problem"}, {"command is missing", "list"}}, {{"log"}, {"missing", "show"}},
    {{"solution"}, {"missing", "check"}}, {{"trace"}, {"missing", "check"}},
    {{"problem", "check"}, {"path"}}, {{"problem", "show"}, {"path"}},
    {{"problem", "reference"}, {"path"}}, {{"solution", "check"}, {"file"}},
    {{"trace", "check"}, {"file"}}, {{"convert"}, {"file"}}, {{"broker"}, {"--gpus"}},
    {{"lease"}, {"--"}}, {{"lease", "--"}, {"--"}}, {{"score"}, {"traces"}},
    {{"score", "text"}, {"--bounds"}}};
  for (const auto& verb : run_verbs)
    all.push_back({verb, {"run"}});
  for (const char* flag :
    {"--gpus", "--workers", "--budget", "--seed", "--out", "--proposer", "--candidate", "--bounds",
      "--oracle", "--python", "--toolchain", "--lease-policy", "--planner", "--config"})
    all.push_back({{"run", flag}, {flag}});
  for (const auto& verb : std::vector<std::vector<std::string>>{{"doctor", "--python"},
         {"problem", "reference", "softmax", "--limit"}, {"solution", "check", "text", "--problem"},
         {"convert", "empty.json", "--out"}, {"broker", "--gpus"}, {"score", "text", "--bounds"},
         {"export", "folder", "--out"}, {"report", "folder", "--html", "--out"},
         {"log", "show", "folder", "--last"}})
    all.push_back({verb, {verb.back()}});
  refuse_all(all);
}

TEST_CASE("a value of the wrong kind, or out of range, is told with its flag") {
  refuse_all({{{"run", "--workers", "many"}, {"--workers", "many"}},
    {{"run", "--workers", "0"}, {"--workers"}}, {{"run", "--workers", "-1"}, {"--workers"}},
    {{"run", "--workers", "1.5"}, {"--workers"}},
    {{"run", "--workers", "99999999999"}, {"--workers"}}, {{"run", "--seed", "x"}, {"--seed"}},
    {{"run", "--seed", "-1"}, {"--seed"}}, {{"run", "--seed", "18446744073709551616"}, {"--seed"}},
    {{"run", "--budget", "10parsecs"}, {"10parsecs", "10m"}}, {{"run", "--budget", "0m"}, {"0m"}},
    {{"run", "--budget", "-5m"}, {"-5m"}}, {{"run", "--json=3"}, {"--json"}},
    {{"run", "--keep-going=maybe"}, {"--keep-going"}},
    {{"run", "--gpus", "mock:h200:0"}, {"mock:h200:0"}},
    {{"run", "--gpus", "mock:h200:99999"}, {"99999"}},
    {{"run", "--planner", "rebalance(floor=2)"}, {"floor"}},
    {{"run", "--planner", "gate(floor(0.5, risin))"}, {"--planner", "rising"}},
    {{"problem", "reference", "softmax", "--limit", "0s"}, {"--limit", "30s"}},
    {{"problem", "reference", "softmax", "--limit", "soon"}, {"--limit", "soon"}},
    {{"broker", "--gpus", "sleep:0"}, {"sleep:0"}},
    {{"broker", "--gpus", "sleep:1", "--ttl", "0s"}, {"--ttl"}},
    {{"broker", "--gpus", "sleep:1", "--cap", "timing"}, {"--cap"}},
    {{"broker", "--gpus", "sleep:1", "--waiting-max", "x"}, {"--waiting-max"}},
    {{"lease", "--cap", "soon", "--", "true"}, {"--cap", "soon"}}});
}

TEST_CASE("a node says before it connects what is wrong with its flags") {
  const auto with = [](std::vector<std::string> flags) {
    std::vector<std::string> all{"node", "--join", "127.0.0.1:1", "--state", "state"};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  };
  refuse_all({{{"node"}, {"--join"}}, {{"node", "--join", "here"}, {"--join", "here"}},
    {{"node", "--join", "127.0.0.1:0"}, {"--join"}},
    {{"node", "--join", "192.0.2.1:4100"}, {"--tls"}}, {with({"--gpu", "x"}), {"--gpu", "--gpus"}},
    {with({"--gpus", "mock:h20"}), {"--gpus", "h200"}},
    {with({"--gpus", "mock:h200:65"}), {"--gpus", "64"}},
    {with({"--name", "a b"}), {"--name", "a b"}},
    {with({"--name", std::string(65, 'n')}), {"--name", "64"}},
    {with({"--compile-slots", "many"}), {"--compile-slots", "many"}},
    {with({"--workers", "-1"}), {"--workers"}},
    {with({"--compile-slots", "0", "--workers", "0"}), {"nothing", "--gpus"}},
    {with({"--toolchain", "clan"}), {"--toolchain", "clang"}},
    {with({"--compile-slots", "1", "--workers", "1", "--cache-max", "1MiB"}),
      {"--cache-max", "8GiB"}},
    {with({"--heartbeat", "often"}), {"--heartbeat", "often"}},
    {with({"--node-timeout", "0s"}), {"--node-timeout"}},
    {{"node", "--join", "127.0.0.1:1", "--compile-slots", "0", "--workers", "1", "--state", "text"},
      {"--state", "text"}}});
}

TEST_CASE("an unknown name is told with the nearest one") {
  refuse_all({{{"run", "softmaks"}, {"softmaks", "softmax"}},
    {{"run", "--gpus", "mock:h20"}, {"h20", "h200"}}, {{"run", "--gpus", "mocks:h200"}, {"mocks"}},
    {{"run", "--proposer", "templat"}, {"templat", "template"}},
    {{"run", "--toolchain", "nvrt"}, {"nvrt", "nvrtc"}},
    {{"run", "--oracle", "touch"}, {"touch", "torch"}},
    {{"run", "--lease-policy", "strid"}, {"strid", "stride"}},
    {{"run", "--planner", "equals"}, {"equals", "equal"}},
    {{"run", "softmax", "--candidate", "softmux=x.cu"}, {"softmux", "softmax"}},
    {{"problem", "show", "softmaks"}, {"softmaks", "softmax"}},
    {{"problem", "reference", "softmax", "--workload", "al"}, {"al", "all"}},
    {{"solution", "check", "empty.json", "--problem", "softmaks"}, {"softmaks"}},
    {{"broker", "--gpus", "mock:h20"}, {"h20", "h200"}},
    {{"broker", "--gpus", "sleep:1", "--lease-policy", "strid"}, {"strid", "stride"}},
    {{"broker", "--gpus", "sleep:1", "--cap", "timng=5s"}, {"timng"}},
    {{"lease", "--class", "timng", "--", "true"}, {"timng", "timing"}}});
}

TEST_CASE("a file that is not there, or a folder or text in its place, is named") {
  std::vector<mistake> all{{{"run", "./nowhere"}, {"./nowhere"}},
    {{"run", "./folder"}, {"folder", "definition.json"}}, {{"run", "./text"}, {"./text"}},
    {{"run", "softmax", "--candidate", "nothing.cu"}, {"nothing.cu"}},
    {{"run", "softmax", "--candidate", "text"}, {".cu"}},
    {{"run", "softmax", "--bounds", "nothing"}, {"--bounds", "nothing"}},
    {{"run", "softmax", "--bounds", "folder"}, {"--bounds", "folder"}},
    {{"run", "softmax", "--bounds", "broken.json"}, {"broken.json"}},
    {{"run", "softmax", "--bounds", "empty.json"}, {"empty.json"}},
    {{"run", "softmax", "--oracle", "torch", "--python", "/nowhere"}, {"/nowhere"}},
    {{"problem", "list", "nowhere"}, {"nowhere"}}, {{"problem", "list", "text"}, {"text"}},
    {{"problem", "check", "nowhere"}, {"nowhere"}}, {{"problem", "check", "folder"}, {"folder"}},
    {{"problem", "check", "bad_problem"}, {"definition.json", "name"}},
    {{"problem", "show", "nowhere"}, {"nowhere"}}, {{"problem", "show", "folder"}, {"folder"}},
    {{"problem", "show", "broken.json"}, {"broken.json"}},
    {{"problem", "reference", "nowhere"}, {"nowhere"}},
    {{"problem", "reference", "folder"}, {"folder"}},
    {{"solution", "check", "nowhere"}, {"nowhere"}}, {{"solution", "check", "folder"}, {"folder"}},
    {{"solution", "check", "broken.json"}, {"broken.json:2"}},
    {{"solution", "check", "empty.json"}, {"empty.json"}},
    {{"trace", "check", "nowhere"}, {"nowhere"}}, {{"trace", "check", "folder"}, {"folder"}},
    {{"trace", "check", "broken.json"}, {"broken.json:1"}}, {{"convert", "nowhere"}, {"nowhere"}},
    {{"convert", "folder"}, {"folder"}}, {{"convert", "broken.json"}, {"broken.json"}},
    {{"score", "nowhere", "--bounds", "empty.json"}, {"empty.json"}},
    {{"score", "text", "--bounds", "nowhere"}, {"--bounds", "nowhere"}},
    {{"score", "text", "--bounds", "folder"}, {"folder"}}};
  for (const auto& verb : run_verbs)
    for (const char* given : {"nowhere", "folder", "text"}) {
      auto arguments = verb;
      arguments.emplace_back(given);
      all.push_back({arguments, {given, "run.db"}});
    }
  refuse_all(all);
}

TEST_CASE("what exists already is not written over") {
  refuse_all({{{"run", "softmax", "--out", "folder"}, {"--out", "folder", "exists"}},
    {{"run", "softmax", "--out", "text"}, {"--out", "text"}},
    {{"run", "softmax", "--out", "text/below"}, {"--out", "text"}},
    {{"convert", "empty.json", "--out", "text"}, {"text"}}});
}

TEST_CASE("flags that do not go together are told") {
  refuse_all({{{"run", "--proposer", "sleep"}, {"--proposer sleep", "--gpus"}},
    {{"run", "--gpus", "sleep:100ms:2"}, {"--gpus", "--proposer sleep"}},
    {{"run", "--gpus", "mock:h200,mock:b200"}, {"--gpus"}},
    {{"run", "softmax", "--proposer", "scripted"}, {"--candidate"}},
    {{"run", "--candidate", "x.cu"}, {"PROBLEM="}},
    {{"run", "softmax", "softmax"}, {"softmax", "already"}},
    {{"run", "--seed", "1", "--seed", "2"}, {"--seed"}},
    {{"run", "--budget", "10m", "--budget", "20m"}, {"20m"}},
    {{"report", "folder", "--json", "--html"}, {"--html"}},
    {{"report", "folder", "--out", "x"}, {"--html"}}});
}

TEST_CASE("the environment and the configuration file are checked as flags are") {
  refuse_all({{{"run"}, {"GRISTMILL_WORKERS", "few"}, {{"GRISTMILL_WORKERS", "few"}}},
    {{"run"}, {"GRISTMILL_SEED"}, {{"GRISTMILL_SEED", "-1"}}},
    {{"run"}, {"GRISTMILL_KEEP_GOING", "yes"}, {{"GRISTMILL_KEEP_GOING", "yes"}}},
    {{"run"}, {"mock:h20", "h200"}, {{"GRISTMILL_GPUS", "mock:h20"}}},
    {{"run"}, {"10parsecs"}, {{"GRISTMILL_BUDGET", "10parsecs"}}},
    {{"run"}, {"templat", "template"}, {{"GRISTMILL_PROPOSER", "templat"}}},
    {{"run"}, {"gcc", "clang"}, {{"GRISTMILL_TOOLCHAIN", "gcc"}}},
    {{"run"}, {"strid", "stride"}, {{"GRISTMILL_LEASE_POLICY", "strid"}}},
    {{"run", "softmax"}, {"folder"}, {{"GRISTMILL_OUT", "folder"}}},
    {{"run", "softmax"}, {"nowhere"}, {{"GRISTMILL_BOUNDS", "nowhere"}}},
    {{"run", "softmax", "--toolchain", "nvrtc"}, {"--toolchain nvrtc", "libnvrtc"},
      {{"GRISTMILL_CUDA", "/nowhere"}}},
    {{"run", "softmax", "--toolchain", "clang"}, {"--toolchain clang", "clang-19"},
      {{"PATH", "/nowhere"}}},
    {{"run", "--config", "nowhere.toml"}, {"--config", "nowhere.toml"}},
    {{"run", "--config", "folder"}, {"--config", "folder"}},
    {{"run", "--config", "broken.toml"}, {"broken.toml:1"}},
    {{"run", "--config", "unknown_key.toml"}, {"unknown_key.toml:3", "run.gpu", "gpus"}},
    {{"run", "--config", "unknown_table.toml"}, {"unknown_table.toml", "runs", "run"}},
    {{"run", "--config", "wrong_type.toml"}, {"wrong_type.toml:2", "run.workers"}},
    {{"run", "--config", "large.toml"}, {"large.toml:2", "run.workers"}}});
}

TEST_CASE("all problems that cannot be loaded are told at once, and one must be left") {
  refuse_all({{{"run", "./bad_problem", "./worse_problem", "softmax"},
                {"2 of 3 problems", "--keep-going", "bad_problem", "worse_problem"}},
    {{"run", "./bad_problem", "./nowhere", "--keep-going"},
      {"2 of 2 problems", "bad_problem", "./nowhere"}},
    {{"run", "./nowhere", "softmax"}, {"./nowhere"}}});
}

TEST_CASE("a file that may not be read is named") {
  if (geteuid() == 0) {
    MESSAGE("SKIPPED: the superuser may read every file");
    return;
  }
  const workshop shop;
  for (const char* name : {"text", "empty.json", "wrong_type.toml"})
    fs::permissions(shop.folder() / name, fs::perms::none);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
         {"run", "--config", "wrong_type.toml"}, {"run", "softmax", "--bounds", "empty.json"},
         {"solution", "check", "empty.json"}, {"trace", "check", "text"}, {"convert", "empty.json"},
         {"score", "text", "--bounds", "empty.json"}}) {
    const auto command = joined(arguments);
    CAPTURE(command);
    program p(arguments);
    CHECK(p.wait() == 2);
    CHECK((p.err() + p.out()).find(arguments.back()) != std::string::npos);
  }
}

TEST_CASE(
  "with keep-going the rest is run, what was left out is in the table, the exit code is 1") {
  const workshop shop;
  program p({"run", "./bad_problem", "softmax", "--keep-going", "--budget", "1attempts", "--seed",
    "1", "--out", "run"});
  CHECK(p.wait() == 1);
  CHECK(p.err().find("left out") != std::string::npos);
  CHECK(p.err().find("bad_problem") != std::string::npos);
  CHECK(p.out().find("1 problem could not be loaded and was left out") != std::string::npos);
  CHECK(p.out().find("./bad_problem: ") != std::string::npos);
  CHECK(fs::exists(shop.folder() / "run/run.db"));
  program report({"report", "run", "--json"});
  CHECK(report.wait() == 0);
  CHECK(report.out().find("\"problem\": \"./bad_problem\"") != std::string::npos);
}
