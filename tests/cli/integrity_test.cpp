// The corpus of cheats through the real program, and what `audit` and `rescore` say of a run.

#include "tests/cli/program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill::test;
using nlohmann::json;

namespace {

struct answer {
  int code = 0;
  std::string out;
  std::string err;
};

answer run_program(std::vector<std::string> arguments) {
  program p(std::move(arguments));
  const int code = p.wait(std::chrono::seconds{300});
  return {code, p.out(), p.err()};
}

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE_MESSAGE(in, file);
  return text.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("every cheat of the corpus is caught by its rule, and no honest twin is accused") {
  const auto said = run_program({"selfcheck", "--integrity", "--gpus", "mock:h200", "--json"});
  INFO("stderr: ", said.err);
  const auto all = json::parse(said.out, nullptr, false);
  REQUIRE_FALSE(all.is_discarded());
  std::vector<std::string> alone;
  size_t cheats = 0;
  for (const auto& each : all["candidates"]) {
    const auto name = each["name"].get<std::string>();
    const auto what = each.dump();
    CAPTURE(name);
    CAPTURE(what);
    CHECK(each["fine"].get<bool>());
    cheats += each["cheat"].get<bool>() ? 1 : 0;
    if (each["alone"].get<bool>())
      alone.push_back(each["expected"]);
  }
  CHECK(cheats >= 25);
  CHECK(said.code == 0);
  // Without any of these some cheat would have passed here; tests/scoring shows it for every rule.
  for (const char* rule :
    {"changes_global", "reads_clock", "wrong_held_out", "wrong_neighbour", "wrong_output"}) {
    CAPTURE(rule);
    CHECK(std::find(alone.begin(), alone.end(), rule) != alone.end());
  }
  SUBCASE("the page about integrity has all 49 rows as the catalogue has them") {
    const auto page = read(source_file("docs/integrity.md"));
    REQUIRE(all["rows"].size() == 49);
    for (size_t i = 0; i < 49; ++i) {
      const auto& row = all["rows"][i];
      CHECK(row["row"] == i + 1);
      const auto trick = row["trick"].get<std::string>();
      CAPTURE(trick);
      CHECK(has(page, "| " + std::to_string(i + 1) + " | " + trick + " | "));
    }
  }
}

TEST_CASE("without a rule the corpus is not sound, and the cheat is named") {
  const auto said = run_program({"selfcheck", "--integrity", "--without", "changes_global",
    "--only", "cache_by_content", "--only", "ticket_in_module"});
  INFO(said.err);
  CHECK(said.code == 4);
  CHECK(has(said.out, "FAIL  cache_by_content"));
  CHECK(has(said.out, "ok    ticket_in_module"));
}

TEST_CASE("a rule, a candidate or a device that is none is refused with the nearest") {
  auto said = run_program({"selfcheck", "--integrity", "--without", "change_global"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "changes_global"));
  said = run_program({"selfcheck", "--integrity", "--only", "softmax_plane"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "softmax_plain"));
  said = run_program({"selfcheck", "--integrity", "--gpus", "mock:h20"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "h200"));
  said = run_program({"selfcheck", "--without", "changes_global"});
  CHECK(said.code == 2);
}

TEST_CASE("a run's verdicts can be shown and judged again") {
  scratch folder;
  const auto run = (folder / "run").string();
  const auto corpus = [](const char* name) {
    return source_file(std::string("tests/corpus/candidates/") + name + ".cu");
  };
  const auto ran = run_program({"run", "softmax", "--proposer", "scripted", "--seed", "1", "--gpus",
    "mock:h200:1", "--out", run, "--candidate", corpus("right"), "--candidate", corpus("wrong"),
    "--candidate", corpus("does_not_compile")});
  INFO(ran.err);
  REQUIRE((ran.code == 0 || ran.code == 3));

  auto said = run_program({"audit", run, "softmax/cuda/1"});
  INFO(said.out);
  CHECK(said.code == 0);
  CHECK(has(said.out, "attempt softmax/cuda/1: PASSED"));
  CHECK(has(said.out, "modelled, not measured"));
  CHECK(has(said.out, "silent proof      changes_global"));
  CHECK(has(said.out, "compared:"));

  said = run_program({"audit", run, "softmax/cuda/2", "--json"});
  CHECK(said.code == 0);
  const auto shown = json::parse(said.out, nullptr, false);
  REQUIRE_FALSE(shown.is_discarded());
  REQUIRE(shown["verdicts"].size() == 1);
  CHECK(shown["verdicts"][0]["status"] == "INCORRECT_NUMERICAL");
  CHECK(shown["verdicts"][0]["evidence"]["schema"] == "gristmill.evidence/1");
  const auto& rules = shown["verdicts"][0]["rules"];
  CHECK(std::any_of(rules.begin(), rules.end(),
    [](const json& r) { return r["rule"] == "wrong_output" && r["fired"].get<bool>(); }));

  said = run_program({"audit", run, "softmax/cuda/3"});
  CHECK(said.code == 0);
  CHECK(has(said.out, "no evidence was kept"));

  said = run_program({"audit", run, "softmax/cuda/11"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "softmax/cuda/1"));
  said = run_program({"audit", (folder / "rum").string(), "softmax/cuda/1"});
  CHECK(said.code == 2);
  CHECK(has(said.err, "run"));

  const auto file = (folder / "again.jsonl").string();
  said = run_program({"rescore", run, "--write", file});
  INFO(said.out, said.err);
  CHECK(said.code == 0);
  CHECK(has(said.out, "0 come out otherwise"));
  CHECK(has(said.out, "1 have no evidence"));
  const auto lines = read(file);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
  said = run_program({"rescore", run, "--write", file});
  CHECK(said.code == 2);
  CHECK(has(said.err, "again.jsonl"));
}
