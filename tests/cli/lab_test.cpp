#include "tests/cli/program.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill::test;

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void put(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// A sweep of the preset `small`, a few seconds of work.
std::string sweep_text(int seeds) {
  return "scenario = \"small\"\nseeds = " + std::to_string(seeds)
    + "\npolicies = [\"stride\", \"fifo\"]\n[grid]\n\"gpus.count\" = [2, 4]\n";
}

void refused(std::vector<std::string> arguments, const std::string& part) {
  std::string shown;
  for (const auto& each : arguments)
    shown += each + " ";
  program p(std::move(arguments));
  CAPTURE(shown);
  CHECK(p.wait() == 2);
  CAPTURE(p.err());
  CHECK(p.err().find(part) != std::string::npos);
  CHECK(p.out().empty());
}

} // namespace

TEST_CASE("bad input of `simulate` ends with code 2, the flag and the nearest valid choice") {
  refused({"simulate"}, "a scenario is missing");
  refused({"simulate", "smal"}, "did you mean `small`");
  refused({"simulate", "/no/such/file.toml"}, "/no/such/file.toml");
  refused({"simulate", "small", "--policy", "strode"}, "did you mean 'stride'");
  refused({"simulate", "small", "--policy", "fifo", "--policy", "fifo"}, "twice");
  refused({"simulate", "small", "--planner", "equl"}, "did you mean 'equal'");
  refused({"simulate", "small", "--planner", "orcale"}, "did you mean `oracle`");
  refused({"simulate", "small", "--set", "agents.cuont=3"}, "--set agents.cuont=3: ");
  refused({"simulate", "small", "--set", "agents.cuont=3"}, "did you mean `agents.count`");
  refused({"simulate", "small", "--set", "agents.count=many"}, "--set agents.count=many: ");
  refused({"simulate", "small", "--set", "agents.count"}, "must be KEY=VALUE");
  refused({"simulate", "small", "--seeds", "0"}, "--seeds 0: must be a whole number");
  refused({"simulate", "small", "--seeds", "-3"}, "--seeds -3");
  refused({"simulate", "small", "--seeds", "3.5"}, "--seeds 3.5");
  refused({"simulate", "small", "--seeds", "99999999999999999999"}, "--seeds");
  refused({"simulate", "small", "--first-seed", "x"}, "--first-seed x");
  refused({"simulate", "small", "--jobs", "1000000"}, "--jobs");
  refused({"simulate", "small", "--minutes", "0"}, "--minutes 0");
  refused({"simulate", "small", "--engine", "actor"}, "--engine actor: must be `core` or `actors`");
  refused({"simulate", "small", "--csv", "/no/such/folder/x.csv"}, "--csv");
  refused({"simulate", "small", "--html", "/tmp"}, "is a folder");
  refused({"simulate", "small", "--seed", "3"}, "did you mean `--seeds`");
}

TEST_CASE("`simulate` prints what was simulated, with intervals, equal share and the oracle") {
  program p({"simulate", "small", "--seeds", "3", "--planner", "ucb"});
  REQUIRE(p.wait() == 0);
  const auto text = p.out();
  CAPTURE(text);
  for (const char* part : {"SIMULATED", "seeds 1 to 3", "build ", "digest ", "config ", " ± ",
         "wait p50", "planner ucb", "planner equal", "planner oracle", "a bound",
         "equal-oracle gap closed", "lease transitions"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(p.err().find('\x1b') == std::string::npos);
}

TEST_CASE("one seed has no interval, and the table says so") {
  program p({"simulate", "small", "--seeds", "1"});
  REQUIRE(p.wait() == 0);
  CHECK(p.out().find("One seed: there is no interval") != std::string::npos);
  CHECK(p.out().find(" ± ") == std::string::npos);
  CHECK(p.out().find("\nDifferences") == std::string::npos);
}

TEST_CASE("the same seeds give the same result with one thread and with two, byte by byte") {
  std::vector<std::string> outputs;
  for (const char* jobs : {"1", "2", "2"}) {
    program p({"simulate", "small", "--seeds", "4", "--first-seed", "11", "--policy", "stride",
      "--policy", "sept(ageing=0.1)", "--json", "--jobs", jobs});
    REQUIRE(p.wait() == 0);
    outputs.push_back(p.out());
  }
  CHECK(outputs[0] == outputs[1]);
  CHECK(outputs[1] == outputs[2]);
  const auto json = nlohmann::json::parse(outputs[0]);
  CHECK(json.at("simulated") == true);
  CHECK(json.at("variants").size() == 4);
  CHECK(json.at("variants")[0].at("runs")[0].at("seed") == 11);
}

TEST_CASE("`simulate` writes table, page, journal and trace of one and the same run") {
  scratch folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  program p(
    {"simulate", "small", "--seeds", "2", "--csv", at("runs.csv"), "--html", at("page.html"),
      "--journal", at("journal.jsonl"), "--perfetto", at("trace.json"), "--minutes", "20"});
  REQUIRE(p.wait() == 0);
  CHECK(lines_of(content(folder / "runs.csv")) == 1 + 2 * 2);
  const auto page = content(folder / "page.html");
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("first 20 minutes") != std::string::npos);
  std::istringstream journal(content(folder / "journal.jsonl"));
  std::string line;
  uint64_t seq = 0;
  int64_t t = 0;
  std::map<std::string, int> kinds;
  while (std::getline(journal, line)) {
    const auto e = nlohmann::json::parse(line);
    CHECK(e.at("seq") == ++seq);
    CHECK(e.at("t").get<int64_t>() >= t);
    t = e.at("t").get<int64_t>();
    ++kinds[e.at("kind").get<std::string>()];
  }
  CHECK(kinds["lab_run"] == 1);
  CHECK(kinds["lease_grant"] > 0);
  CHECK(kinds["lease_request"] >= kinds["lease_grant"]);
  const auto trace = nlohmann::json::parse(content(folder / "trace.json"));
  std::map<int, double> end;
  for (const auto& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X")
      continue;
    double& last = end[e.at("tid").get<int>()];
    CHECK(e.at("ts").get<double>() >= last - 0.001);
    last = e.at("ts").get<double>() + e.at("dur").get<double>();
    CHECK(last <= 20 * 60e6 + 1);
  }
  CHECK_FALSE(end.empty());
  for (const auto& file : fs::directory_iterator(folder / ""))
    CHECK(file.path().extension() != ".part");
}

TEST_CASE("bad sweep files end with code 2 and leave no folder") {
  scratch folder;
  const auto file = (folder / "s.toml").string();
  const auto out = (folder / "out").string();
  refused({"sweep", (folder / "none.toml").string(), "--out", out}, "none.toml");
  refused({"sweep", file}, "--out");
  const auto bad = [&](const std::string& text, const std::string& part) {
    put(file, text);
    refused({"sweep", file, "--out", out}, part);
    CHECK_FALSE(fs::exists(out));
  };
  bad("scenario = \"smal\"\n", "did you mean `small`");
  bad("scenario = \"small\"\npolicies = [\"fofi\"]\n", "did you mean 'fifo'");
  bad("scenario = \"small\"\nplanners = [\"eqal\"]\n", "did you mean 'equal'");
  bad("scenario = \"small\"\n[grid]\n\"gpu.count\" = [2]\n", "s.toml:3: grid.gpu.count");
  bad("scenario = \"small\"\nsedes = 3\n", "did you mean `seeds`");
  bad("scenario = \"small\"\nbaseline = {planner = \"ucb\"}\n", "baseline");
  bad("scenario = [\n", "s.toml:");
}

TEST_CASE("a sweep gives equal files with one thread, with two, and after kills") {
  scratch folder;
  put(folder / "s.toml", sweep_text(6));
  const auto sweep = [&](const char* out, const char* jobs) {
    return std::vector<std::string>{
      "sweep", (folder / "s.toml").string(), "--out", (folder / out).string(), "--jobs", jobs};
  };
  program one(sweep("one", "1"));
  REQUIRE(one.wait() == 0);
  program two(sweep("two", "2"));
  REQUIRE(two.wait() == 0);
  int kills = 0;
  int end = -1;
  for (int attempt = 0; attempt < 12 && end != 0; ++attempt) {
    program killed(sweep("killed", "2"));
    const auto results = folder / "killed" / "results.csv";
    const size_t before = lines_of(content(results));
    if (attempt < 3 && eventually([&] { return lines_of(content(results)) > before + 2; })) {
      killed.signal(SIGKILL);
      ++kills;
    }
    end = killed.wait();
  }
  CHECK(end == 0);
  CHECK(kills > 0);
  for (const char* name : {"results.csv", "curves.csv", "waits.csv", "summary.csv",
         "differences.csv", "report.html", "plan.txt"}) {
    CAPTURE(name);
    const auto expected = content(folder / "one" / name);
    CHECK_FALSE(expected.empty());
    CHECK(content(folder / "two" / name) == expected);
    CHECK(content(folder / "killed" / name) == expected);
  }
  // 2 GPUs counts, 2 policies, equal and oracle, 6 seeds.
  CHECK(lines_of(content(folder / "one" / "results.csv")) == 1 + 2 * 2 * 2 * 6);
  CHECK(one.out() == two.out());
}

TEST_CASE("a finished sweep is told again at once; a changed file is refused with what changed") {
  scratch folder;
  put(folder / "s.toml", sweep_text(2));
  const std::vector<std::string> command = {
    "sweep", (folder / "s.toml").string(), "--out", (folder / "out").string()};
  program first(command);
  REQUIRE(first.wait() == 0);
  program again(command);
  REQUIRE(again.wait() == 0);
  CHECK(again.out() == first.out());
  CHECK(again.err().find("16 of 16 runs are there already") != std::string::npos);
  const auto results = content(folder / "out" / "results.csv");
  put(folder / "s.toml", sweep_text(3));
  refused(command, "is: seeds = 3");
  put(folder / "s.toml", sweep_text(2) + "\"agents.count\" = [7]\n");
  refused(command, "agents.count=7");
  CHECK(content(folder / "out" / "results.csv") == results);
}

TEST_CASE("Ctrl-C ends a sweep with code 130 and keeps what was done") {
  scratch folder;
  put(folder / "s.toml", sweep_text(5000));
  const std::vector<std::string> command = {
    "sweep", (folder / "s.toml").string(), "--out", (folder / "out").string()};
  program p(command);
  const auto results = folder / "out" / "results.csv";
  REQUIRE(eventually([&] { return lines_of(content(results)) > 3; }));
  p.signal(SIGINT);
  CHECK(p.wait() == 130);
  CHECK(p.err().find("the same command goes on") != std::string::npos);
  CHECK(p.out().empty());
  const auto kept = content(results);
  CHECK(lines_of(kept) > 3);
  CHECK(kept.back() == '\n');
}

TEST_CASE("Ctrl-C ends `simulate` with code 130 and prints no table of half the runs") {
  program p({"simulate", "small", "--seeds", "20000"});
  pause_briefly();
  p.signal(SIGINT);
  CHECK((p.wait() == 130));
  CHECK(p.out().empty());
}
