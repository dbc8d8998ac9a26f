#include "simulation/scenario_file.hpp"

#include "simulation/core/engine.hpp"

#include <cstdio>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>

using namespace gristmill;

namespace {

const std::string least = R"toml(
duration = "2h"
[[gpus]]
count = 2
)toml";

scenario read(const std::string& text) {
  auto out = scenario_from_toml(text, "mine.toml");
  REQUIRE_MESSAGE(out.has_value(), (out ? std::string{} : out.error().what));
  return *out;
}

void refused(const std::string& text, const std::string& part) {
  const auto out = scenario_from_toml(text, "mine.toml");
  CAPTURE(text);
  REQUIRE_FALSE(out.has_value());
  CAPTURE(out.error().what);
  CHECK(out.error().code == errc::invalid_input);
  CHECK(out.error().what.starts_with("mine.toml:"));
  CHECK(out.error().what.find(part) != std::string::npos);
}

void not_set(const std::string& key, const std::string& value, const std::string& part) {
  auto what = read(least);
  const auto before = canonical_toml(what);
  const auto out = set_scenario_key(what, key, value);
  CAPTURE(key);
  REQUIRE_FALSE(out.has_value());
  CAPTURE(out.error().what);
  CHECK(out.error().what.find(part) != std::string::npos);
  CHECK(canonical_toml(what) == before);
}

} // namespace

TEST_CASE("a file sets every kind of key") {
  const auto what = read(R"toml(
name = "mine"
duration = 7200
warm_up = "90s"
lease_policy = "stride(by=agent)/fifo"
planner = "oracle"
estimate = "exact"
patience = "1h"
problems = 3
starts_solved = true
caps = {timing = "5m"}
[[gpus]]
name = "new"
count = 2
[[gpus]]
name = "old"
model = "h200"
count = 1
speed = 0.5
[[agents]]
count = 4
class = "profile"
need = "h200"
[think]
calls_mean = 2
call = {kind = "hyperexponential", mean = 3, cv2 = 4}
[compile]
on_lease = true
mean = 4.5
[hold]
kind = "lognormal"
mean = "24s"
sigma = 0.5
cap = "2m"
[[incidents]]
kind = "node_down"
at = 100
for = 50
what = "old-0"
[[chance_incidents]]
kind = "rate_limit"
mean_between = "1h"
mean_for = "1m"
pace = 0.5
)toml");
  CHECK(what.name == "mine");
  CHECK(what.duration_s == 7200);
  CHECK(what.warm_up_s == 90);
  CHECK(what.estimate == hold_estimate::exact);
  CHECK(what.caps_s[1] == 300);
  CHECK(what.gpus.size() == 2);
  CHECK(what.gpus[1].speed == 0.5);
  CHECK(what.agents[0].what == lease_class::profile);
  CHECK(what.think.call.kind == draw_kind::hyperexponential);
  CHECK(what.compile.on_lease);
  CHECK(what.compile.time.mean_s == 4.5);
  CHECK(what.hold.time.cap_s == 120);
  CHECK(what.incidents.size() == 1);
  CHECK(what.chance_incidents[0].pace == 0.5);
}

TEST_CASE("what is written canonically reads back as the same") {
  for (const auto& p : presets()) {
    CAPTURE(p.name);
    const auto what = load_scenario(p.name);
    REQUIRE_MESSAGE(what.has_value(), (what ? std::string{} : what.error().what));
    CHECK(what->name == p.name);
    CHECK_FALSE(p.what.empty());
    CHECK(p.what.back() == '.');
    const auto text = canonical_toml(*what);
    const auto again = scenario_from_toml(text, "canonical");
    REQUIRE_MESSAGE(again.has_value(), (again ? std::string{} : again.error().what));
    CHECK(canonical_toml(*again) == text);
  }
  CHECK(presets().size() == 4);
  // Nothing is left out: groups that are not there stay away, odd texts survive.
  auto odd = read(least);
  odd.name = "say \"hi\"\n\\ tab\t";
  odd.agents.clear();
  const auto back = scenario_from_toml(canonical_toml(odd), "odd");
  REQUIRE(back.has_value());
  CHECK(back->name == odd.name);
  CHECK(back->agents.empty());
}

TEST_CASE("a file may begin from a preset and change one key of a group") {
  const auto what = read("preset = \"small\"\n[gpus]\ncount = 9\n[learning]\ngamma = 4\n");
  const auto base = load_scenario("small");
  REQUIRE(base);
  CHECK(what.gpus.size() == 1);
  CHECK(what.gpus[0].count == 9);
  CHECK(what.gpus[0].model == base->gpus[0].model);
  CHECK(what.learning.gamma == 4);
  CHECK(what.learning.correct == base->learning.correct);
}

TEST_CASE("what a file has wrong is told with line, key and the nearest valid one") {
  refused(least + "durration = 3\n", "mine.toml:5: gpus.durration: there is no such key");
  refused("durration = 3\n", "did you mean `duration`");
  refused("duration = 1\n[gpu]\ncount = 1\n", "mine.toml:2: gpu:");
  refused("[[gpus]]\ncuont = 1\n", "did you mean `gpus.count`");
  refused("[hold]\nmaen = 1\n", "did you mean `hold.mean`");
  refused("[hold.mean]\nx = 1\n", "hold.mean");
  refused("duration = true\n", "mine.toml:1: duration: true is not a time");
  refused("duration = \"2 fortnights\"\n", "is not a time");
  refused("duration = -5\n[[gpus]]\ncount = 1\n", "duration is -5");
  refused("duration = nan\n", "is not a time");
  refused("duration = 1979-05-27\n", "must be a text, a number, true or false");
  refused("name = [1]\n", "must be a text, a number, true or false");
  refused("problems = 1.5\n", "whole number");
  refused("problems = -1\n", "whole number");
  refused("problems = 99999999999\n", "whole number");
  refused("starts_solved = 1\n", "true or false");
  refused("estimate = \"exakt\"\n", "did you mean `exact`");
  refused("[hold]\nkind = \"lognormol\"\n", "did you mean `lognormal`");
  refused("[[agents]]\nclass = \"timming\"\n", "did you mean `timing`");
  refused("gpus = 3\n", "must be a list of tables");
  refused("gpus = [1, 2]\n", "must be a list of tables");
  refused("preset = \"smal\"\n", "did you mean `small`");
  refused("preset = 3\n", "must be a text");
  refused(least + "[hold]\nagent_sigma = 99\n", "hold.agent_sigma is 99");
  refused(least + "[fate]\nhang = 0.7\nfault = 0.7\n", "fate.hang + fate.fault");
  refused("lease_policy = \"fiffo\"\n" + least, "lease_policy");
  refused("planner = \"equall\"\n" + least, "planner");
  refused("warm_up = \"3h\"\n" + least, "warm_up");
  refused(least + "[[incidents]]\nkind = \"gpu_down\"\nfor = 1\nwhat = \"gpu#7\"\n", "gpu#7");
  refused(least + "[[incidents]]\nkind = \"node_down\"\nfor = 1\nwhat = \"x\"\n", "node 'x'");
  refused(least + "[[incidents]]\nkind = \"rate_limit\"\nfor = 1\npace = 2\n", "incidents.pace");
  refused(least + "[[gpus]]\ncount = 1\n", "'gpu' stands twice");
  refused(least + "[[agents]]\nname = \"a b\"\n", "agents.name");
  refused("duration = \n", "mine.toml:1");
  refused("duration = 1\nduration = 2\n", "mine.toml:2");
  refused(std::string((1 << 20) + 1, '#'), "1 MiB");
  refused("[[gpus]]\ncount = 20000\n", "duration");
}

TEST_CASE("hostile depth and width do not crash the reader") {
  std::string deep;
  for (int i = 0; i < 5000; ++i)
    deep += '[';
  CHECK_FALSE(scenario_from_toml("gpus = " + deep, "deep").has_value());
  std::string dotted = "a";
  for (int i = 0; i < 3000; ++i)
    dotted += ".a";
  CHECK_FALSE(scenario_from_toml(dotted + " = 1\n", "dotted").has_value());
  std::string many;
  for (int i = 0; i < 5000; ++i)
    many += fmt::format("[[incidents]]\nkind = \"model_outage\"\nat = {}\nfor = 1\n", i);
  CHECK(scenario_from_toml(least + many, "many").has_value());
  CHECK_FALSE(scenario_from_toml(std::string("\0\xff\xfe", 3), "bytes").has_value());
}

TEST_CASE("one key is changed as on the command line") {
  auto what = read(least + "[[agents]]\ncount = 3\n");
  REQUIRE(set_scenario_key(what, "agents.count", "500"));
  REQUIRE(set_scenario_key(what, "duration", "21d"));
  REQUIRE(set_scenario_key(what, "hold.mean", "12.5"));
  REQUIRE(set_scenario_key(what, "compile.on_lease", "true"));
  REQUIRE(set_scenario_key(what, "lease_policy", "fifo"));
  REQUIRE(set_scenario_key(what, "name", "27"));
  CHECK(what.agents[0].count == 500);
  CHECK(what.duration_s == 21 * 86'400);
  CHECK(what.hold.time.mean_s == 12.5);
  CHECK(what.compile.on_lease);
  CHECK(what.name == "27");
  not_set("agents.cuont", "3", "did you mean `agents.count`");
  not_set("agents.count", "3", "0 members");
  not_set("gpus.count", "many", "gpus.count: 'many' is not a whole number");
  not_set("gpus", "3", "there is no such key");
  not_set("preset", "small", "there is no such key");
  not_set("", "3", "there is no such key");
  not_set("duraton", "3", "did you mean `duration`");
  what.gpus.push_back({"more", "b200", 1, 1, 8});
  const auto many = set_scenario_key(what, "gpus.count", "3");
  REQUIRE_FALSE(many);
  CHECK(many.error().what.find("2 members") != std::string::npos);
}

TEST_CASE("a scenario is loaded by preset or by path") {
  const auto absent = load_scenario("sead-run");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == errc::not_found);
  CHECK(absent.error().what.find("did you mean `seed-run`") != std::string::npos);
  const std::string path = "scenario_file_test.toml";
  std::ofstream(path) << least;
  const auto there = load_scenario(path);
  std::remove(path.c_str());
  REQUIRE(there);
  CHECK(there->gpus[0].count == 2);
}

TEST_CASE("the small preset and the lock's preset run, with what they promise") {
  const auto small = load_scenario("small");
  REQUIRE(small);
  const auto r = run_core(*small, {});
  REQUIRE(r);
  CHECK(r->utilisation() > 0.97);
  CHECK(r->end()->geomean > 0.7);
  CHECK(r->hangs > 0);
  const auto lock = load_scenario("kernelbench-b200");
  REQUIRE(lock);
  double cycles = 0;
  double think = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    lab_options options;
    options.world.seed = seed;
    const auto one = run_core(*lock, std::move(options));
    REQUIRE(one);
    think += one->thought_s;
    cycles += static_cast<double>(one->ended);
  }
  // 85 s off the lock between two acquisitions.
  CHECK(think / cycles == doctest::Approx(85).epsilon(0.02));
}
