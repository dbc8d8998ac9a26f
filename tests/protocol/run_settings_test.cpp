#include "protocol/run_settings.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <map>

using namespace gristmill;

namespace {

run_settings all_different() {
  run_settings s;
  s.keep_going = true;
  s.problems = {"softmax", "a folder/with \"quotes\""};
  s.gpus = "mock:b200:3";
  s.workers = 5;
  s.budget = {"10m", "500attempts"};
  s.seed = 42;
  s.out = "runs/mine";
  s.proposer = "scripted";
  s.candidates = {"softmax=mine.cu", "C:\\back\\slash.cu"};
  s.bounds = "bounds.json";
  s.toolchain = "clang";
  s.lease_policy = "stride";
  s.oracle = "torch";
  s.python = "/opt/tab\there/python\n3";
  s.rounds = 7;
  s.check_elements = 1234;
  s.promote = "on";
  s.samples = 21;
  s.flush = "clean";
  return s;
}

void check_equal(const run_settings& a, const run_settings& b) {
  CHECK(a.problems == b.problems);
  CHECK(a.keep_going == b.keep_going);
  CHECK(a.gpus == b.gpus);
  CHECK(a.workers == b.workers);
  CHECK(a.budget == b.budget);
  CHECK(a.seed == b.seed);
  CHECK(a.out == b.out);
  CHECK(a.proposer == b.proposer);
  CHECK(a.candidates == b.candidates);
  CHECK(a.bounds == b.bounds);
  CHECK(a.toolchain == b.toolchain);
  CHECK(a.lease_policy == b.lease_policy);
  CHECK(a.oracle == b.oracle);
  CHECK(a.python == b.python);
  CHECK(a.rounds == b.rounds);
  CHECK(a.check_elements == b.check_elements);
  CHECK(a.promote == b.promote);
  CHECK(a.samples == b.samples);
  CHECK(a.flush == b.flush);
}

run_settings read(const std::string& text, run_settings base = {}) {
  auto done = apply_toml(base, text, "gristmill.toml");
  REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
  return base;
}

/// The refusal, and proof that nothing was changed.
std::string refused(const std::string& text) {
  auto s = all_different();
  auto done = apply_toml(s, text, "gristmill.toml");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::invalid_input);
  check_equal(s, all_different());
  return done.error().what;
}

result<void> from_environment(run_settings& s, const std::map<std::string, std::string>& given) {
  return apply_environment(s, [&](const char* name) -> const char* {
    auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every key of the configuration file is read") {
  auto s = read(R"([run]
problems = ["softmax", "rmsnorm"]
gpus = "mock:l4"
workers = 4
budget = ["10m", "500attempts"]
seed = 1
out = "runs/mine"
proposer = "scripted"
candidates = ["softmax=mine.cu"]
bounds = "bounds.json"
toolchain = "clang"
lease_policy = "stride"
[oracle]
kind = "native"
python = "/opt/python3"
)");
  CHECK(s.problems == std::vector<std::string>{"softmax", "rmsnorm"});
  CHECK(s.gpus == "mock:l4");
  CHECK(s.workers == 4);
  CHECK(s.budget == std::vector<std::string>{"10m", "500attempts"});
  CHECK(s.seed == 1);
  CHECK(s.out == "runs/mine");
  CHECK(s.proposer == "scripted");
  CHECK(s.candidates == std::vector<std::string>{"softmax=mine.cu"});
  CHECK(s.bounds == "bounds.json");
  CHECK(s.toolchain == "clang");
  CHECK(s.lease_policy == "stride");
  CHECK(s.oracle == "native");
  CHECK(s.python == "/opt/python3");
}

TEST_CASE("an empty file changes nothing") {
  check_equal(read("", all_different()), all_different());
  check_equal(read("[run]\n[oracle]\n", all_different()), all_different());
}

TEST_CASE("an unknown key is refused with its line and the nearest known one") {
  auto what = refused("[run]\nseed = 1\nworkrs = 4\n");
  CHECK(has(what, "gristmill.toml:3"));
  CHECK(has(what, "run.workrs"));
  CHECK(has(what, "workers"));
  CHECK(has(refused("[oracle]\npyton = \"x\"\n"), "python"));
  what = refused("\n[orcale]\nkind = \"x\"\n");
  CHECK(has(what, "gristmill.toml:2"));
  CHECK(has(what, "oracle"));
  CHECK(has(refused("gpus = \"mock:h200\"\n"), "gpus: unknown table"));
}

TEST_CASE("a value of the wrong type is refused with its line and what it must be") {
  CHECK(
    has(refused("[run]\nseed = 1\ngpus = 2\n"), "gristmill.toml:3: run.gpus: must be a string"));
  CHECK(has(refused("[run]\nworkers = \"4\"\n"), "run.workers: must be a whole number"));
  CHECK(has(refused("[run]\nworkers = -1\n"), "run.workers"));
  CHECK(has(refused("[run]\nworkers = 4294967296\n"), "run.workers"));
  CHECK(has(refused("[run]\nworkers = 1.0\n"), "run.workers"));
  CHECK(has(refused("[run]\nseed = -1\n"), "run.seed"));
  CHECK(has(refused("[run]\nseed = \"one\"\n"), "run.seed"));
  CHECK(has(refused("[run]\nseed = true\n"), "run.seed"));
  CHECK(has(refused("[run]\nbudget = \"10m\"\n"), "run.budget: must be a list of strings"));
  CHECK(has(refused("[run]\nproblems = [\"a\",\n 3]\n"), "gristmill.toml:3: run.problems"));
  CHECK(has(refused("run = 3\n"), "run: must be a table"));
}

TEST_CASE("a file that is no TOML is refused with its line") {
  CHECK(has(refused("[run]\nseed = \n"), "gristmill.toml:2"));
  CHECK(has(refused("[run]\nseed = 1\nseed = 2\n"), "gristmill.toml:3"));
  CHECK(has(refused(std::string(2 << 20, '#')), "larger than 1 MiB"));
}

TEST_CASE("every variable of the environment is read") {
  run_settings s;
  REQUIRE(from_environment(s,
    {{"GRISTMILL_GPUS", "mock:l4"}, {"GRISTMILL_WORKERS", "7"}, {"GRISTMILL_BUDGET", "10m,5gpu-s"},
      {"GRISTMILL_SEED", "18446744073709551615"}, {"GRISTMILL_OUT", "o"},
      {"GRISTMILL_PROPOSER", "sleep"}, {"GRISTMILL_BOUNDS", "b"}, {"GRISTMILL_TOOLCHAIN", "clang"},
      {"GRISTMILL_LEASE_POLICY", "stride"}, {"GRISTMILL_ORACLE", "native"},
      {"GRISTMILL_PYTHON", "py"}}));
  CHECK(s.gpus == "mock:l4");
  CHECK(s.workers == 7);
  CHECK(s.budget == std::vector<std::string>{"10m", "5gpu-s"});
  CHECK(s.seed == std::numeric_limits<uint64_t>::max());
  CHECK(s.out == "o");
  CHECK(s.proposer == "sleep");
  CHECK(s.bounds == "b");
  CHECK(s.toolchain == "clang");
  CHECK(s.lease_policy == "stride");
  CHECK(s.oracle == "native");
  CHECK(s.python == "py");
}

TEST_CASE("a variable that is no number is refused by name, and nothing is changed") {
  for (const std::string wrong : {"", "-1", "x", "3x", " 3", "4294967296"}) {
    CAPTURE(wrong);
    auto s = all_different();
    auto done = from_environment(s, {{"GRISTMILL_GPUS", "other"}, {"GRISTMILL_WORKERS", wrong}});
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::invalid_input);
    CHECK(has(done.error().what, "GRISTMILL_WORKERS"));
    check_equal(s, all_different());
  }
  run_settings s;
  CHECK_FALSE(from_environment(s, {{"GRISTMILL_SEED", "18446744073709551616"}}));
}

TEST_CASE("the environment wins over the file, the file over the defaults, key by key") {
  auto s = read("[run]\ngpus = \"file\"\nout = \"file\"\n");
  REQUIRE(from_environment(s, {{"GRISTMILL_GPUS", "environment"}}));
  CHECK(s.gpus == "environment");
  CHECK(s.out == "file");
  CHECK(s.proposer == "template");
}

TEST_CASE("what is written is read back as it was") {
  check_equal(read(to_toml(all_different())), all_different());
  check_equal(read(to_toml(run_settings{}), all_different()), [] {
    auto s = run_settings{};
    s.seed = 42; // A setting that was not given is not written.
    s.check_elements = 1234;
    return s;
  }());
}

TEST_CASE("a seed beyond the numbers of TOML survives") {
  for (uint64_t seed : {uint64_t{0}, uint64_t{1} << 62, (uint64_t{1} << 63) - 1, uint64_t{1} << 63,
         std::numeric_limits<uint64_t>::max()}) {
    run_settings s;
    s.seed = seed;
    CHECK(read(to_toml(s)).seed == seed);
  }
}

TEST_CASE("keep_going is true or false, in the file and in the environment") {
  CHECK(read("[run]\nkeep_going = true\n").keep_going);
  CHECK(refused("[run]\nkeep_going = 1\n").find("run.keep_going: must be true or false")
    != std::string::npos);
  run_settings s;
  const auto set_to = [](const char* value) {
    return [value](const char* name) -> const char* {
      return std::string(name) == "GRISTMILL_KEEP_GOING" ? value : nullptr;
    };
  };
  CHECK(apply_environment(s, set_to("true")));
  CHECK(s.keep_going);
  auto bad = apply_environment(s, set_to("yes"));
  REQUIRE_FALSE(bad);
  CHECK(bad.error().what.find("GRISTMILL_KEEP_GOING='yes'") != std::string::npos);
}

TEST_CASE("settings of models go through TOML and environment like the others") {
  run_settings given;
  given.model_endpoint = "http://127.0.0.1:8080/v1";
  given.model = "m";
  given.model_dialect = "openai-chat";
  given.model_key_env = "MY_KEY";
  given.models = "models.toml";
  given.allow_unpriced = true;
  given.problem_budget = {"2usd"};
  given.agent_budget = {"200calls", "1000tokens"};
  given.cassette = "replay=a=b.jsonl";
  given.program = "p.md";
  given.docs = "d";
  run_settings read;
  REQUIRE(apply_toml(read, to_toml(given), "run.toml"));
  CHECK(to_toml(read) == to_toml(given));
  CHECK(read.cassette == given.cassette);
  CHECK(read.agent_budget == given.agent_budget);
  run_settings from_environment;
  REQUIRE(apply_environment(from_environment, [](const char* name) -> const char* {
    if (std::string_view(name) == "GRISTMILL_MODEL_ENDPOINT")
      return "http://h/v1";
    if (std::string_view(name) == "GRISTMILL_AGENT_BUDGET")
      return "1usd,5calls";
    return std::string_view(name) == "GRISTMILL_ALLOW_UNPRICED" ? "true" : nullptr;
  }));
  CHECK(from_environment.model_endpoint == "http://h/v1");
  CHECK(from_environment.agent_budget == std::vector<std::string>{"1usd", "5calls"});
  CHECK(from_environment.allow_unpriced);
  auto wrong = apply_toml(read, "[models]\nendpont = \"x\"\n", "run.toml");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what.find("`endpoint`") != std::string::npos);
}
