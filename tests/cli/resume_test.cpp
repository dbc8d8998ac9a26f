// Runs that are killed at any moment and gone on with. GRISTMILL_KILLS sets how many kills there
// are in all (a bench uses 50; ctest fewer, to stay short), GRISTMILL_KILL_SEED which moments.

#include "tests/cli/tiny_run.hpp"

#include <csignal>

using namespace gristmill::test;
using clock_type = std::chrono::steady_clock;

namespace {

/// Nothing that has its verdict is compiled or leased again.
void check_no_work_after_verdict(const fs::path& run) {
  std::map<std::pair<std::string, std::string>, json> judged;
  for (const auto& e : log_of(run, {"verdict", "lease_request", "lease_grant", "compiled"})) {
    std::pair<std::string, std::string> name{e.at("problem"), e.at("candidate")};
    if (e.at("kind") == "verdict")
      judged[name] = e.at("attempt");
    else if (judged.contains(name)) // Of the same attempt: relaxed lines may follow a barrier.
      CHECK_MESSAGE(judged.at(name) == e.at("attempt"), e.dump());
  }
}

void check_nothing_left(const fs::path& run) {
  CHECK(processes_in(run).empty());
  CHECK_FALSE(fs::exists(run / "jobs"));
  CHECK_FALSE(fs::exists(run / "data"));
  for (const auto& entry : fs::recursive_directory_iterator(run))
    CHECK_MESSAGE(entry.path().extension() != ".new", entry.path().string());
}

class dice {
public:
  explicit dice(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    state_ += 0x9e3779b97f4a7c15ull;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
  }

private:
  uint64_t state_;
};

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Kills the program after a time, unless it ends before. True when it was killed.
bool kill_after(program& what, std::chrono::milliseconds delay) {
  auto due = clock_type::now() + delay;
  eventually(
    [&] { return clock_type::now() >= due || kill(what.pid(), 0) != 0; }, std::chrono::seconds{60});
  what.signal(SIGKILL);
  return what.wait() == 128 + SIGKILL;
}

} // namespace

TEST_CASE("whenever a run is killed, going on ends with the verdicts of a run that was not") {
  tiny_run tiny;
  auto calm_out = tiny.folder / "calm";
  auto begun = clock_type::now();
  program calm(tiny.starting(calm_out));
  int calm_status = calm.wait();
  auto calm_ms =
    std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - begun).count();
  INFO("stderr: ", calm.err());
  REQUIRE((calm_status == 0 || calm_status == 3));
  auto expected = verdicts_of(calm_out);
  REQUIRE(expected.size() == 12); // Five candidates and the baseline, twice.
  check_no_work_after_verdict(calm_out);

  auto kills_wanted = number_from("GRISTMILL_KILLS", 8);
  dice random(number_from("GRISTMILL_KILL_SEED", 1));
  uint64_t kills = 0;
  uint64_t starts = 0;
  for (int round = 0; kills < kills_wanted; ++round) {
    INFO("round " << round);
    auto out = tiny.folder / fmt::format("killed-{}", round);
    auto moment = [&] {
      return std::chrono::milliseconds{
        static_cast<int64_t>(random.below(static_cast<uint64_t>(calm_ms) * 6 / 5))};
    };
    int status = -1;
    {
      program first(tiny.starting(out));
      // Before its first line there is no run to go on with.
      REQUIRE(eventually([&] { return first.err().find("run directory") != std::string::npos; },
        std::chrono::seconds{60}));
      ++starts;
      if (kill_after(first, moment()))
        ++kills;
    }
    for (uint64_t in_round = 1; in_round < 5 && kills < kills_wanted; ++in_round) {
      program again({"resume", out.string(), "--json"});
      ++starts;
      if (kill_after(again, moment()))
        ++kills;
      else
        break;
    }
    program last({"resume", out.string(), "--json"});
    ++starts;
    status = last.wait();
    INFO("stderr: ", last.err());
    CHECK((status == 0 || status == 3));
    CHECK(verdicts_of(out) == expected);
    check_no_work_after_verdict(out);
    program verify({"log", "verify", out.string()});
    CHECK(verify.wait() == 0);
    INFO(verify.out());
    CHECK(verify.out().find("the log is sound") != std::string::npos);
    check_nothing_left(out);
  }
  MESSAGE(kills << " kills in " << starts << " starts, a calm run takes " << calm_ms << " ms");
}

TEST_CASE("a run that is over is not gone on with, unless its budget is larger") {
  tiny_run tiny;
  auto out = (tiny.folder / "run").string();
  program run({"run", (tiny.folder / "tiny_a").string(), "--seed", "3", "--budget", "2attempts",
    "--oracle", "native", "--out", out, "--json"});
  int status = run.wait();
  INFO("stderr: ", run.err());
  REQUIRE((status == 0 || status == 3));
  auto before = text_of(fs::path(out) / "run.db");

  // As one leaves them that is killed after its last event.
  fs::create_directories(fs::path(out) / "jobs");
  fs::create_directories(fs::path(out) / "data");
  program again({"resume", out});
  CHECK(again.wait() == 0);
  CHECK(again.out().find("nothing to resume") != std::string::npos);
  CHECK(text_of(fs::path(out) / "run.db") == before);
  check_nothing_left(out);

  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
         {"--gpus", "mock:h200:4"}, {"--seed", "4"}, {"--workers", "9"}, {"--planner", "rebalance"},
         {"--budget", "1attempts"}, {"--budget", "1h"}}) {
    program other({"resume", out, flag, value});
    CHECK(other.wait() == 2);
    INFO(other.err());
    CHECK(other.err().find(flag) != std::string::npos);
  }

  program more({"resume", out, "--budget", "4attempts", "--seed", "3", "--json"});
  status = more.wait();
  INFO("stderr: ", more.err());
  CHECK((status == 0 || status == 3));
  auto table = json::parse(more.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  CHECK(table["summary"]["attempts"] == 4);
  program verify({"log", "verify", out});
  CHECK(verify.wait() == 0);
}

TEST_CASE("two processes on one run are refused") {
  tiny_run tiny;
  auto out = tiny.folder / "run";
  program run(tiny.starting(out));
  REQUIRE(eventually([&] { return run.err().find("run directory") != std::string::npos; },
    std::chrono::seconds{60}));
  program second({"resume", out.string()});
  CHECK(second.wait() == 2);
  CHECK(second.err().find("another process works on the run") != std::string::npos);
  int status = run.wait();
  CHECK((status == 0 || status == 3));
}

TEST_CASE("a run whose bounds or whose problem has changed is not gone on with") {
  tiny_run tiny;
  const auto out = (tiny.folder / "run").string();
  const auto bounds = tiny.folder / "bounds.json";
  const auto write_bounds = [&](int t_b_ns) {
    std::ofstream(bounds) << fmt::format(
      R"({{"schema":"gristmill.bounds/2","source":"a test","date":"2026-12-01",)"
      R"("device":"mock:h200","clock":"none","problems":{{"tiny_a":{{"sol_is_dummy":false,)"
      R"("workloads":{{"only":{{"t_sol_ns":10.0,"t_b_ns":{}.0}}}}}}}}}})",
      t_b_ns);
  };
  write_bounds(90'000);
  program run({"run", (tiny.folder / "tiny_a").string(), "--bounds", bounds.string(), "--seed", "3",
    "--budget", "1attempts", "--oracle", "native", "--out", out});
  const int status = run.wait();
  INFO("stderr: ", run.err());
  REQUIRE((status == 0 || status == 3));
  const auto refusal = [&] {
    program again({"resume", out, "--budget", "2attempts"});
    CHECK(again.wait() == 2);
    return again.err();
  };
  write_bounds(90'001);
  CHECK(refusal().find("cannot be compared") != std::string::npos);
  write_bounds(90'000);
  std::ofstream(tiny.folder / "tiny_a" / "workload.jsonl", std::ios::app) << "\n";
  CHECK(refusal().find("the files of problem 'tiny_a' have changed") != std::string::npos);
}

TEST_CASE("what cannot be gone on with says why") {
  scratch folder;
  program nowhere({"resume", (folder / "none").string()});
  CHECK(nowhere.wait() == 2);
  CHECK(nowhere.err().find("no run.db") != std::string::npos);

  const auto rehearsed = (folder / "rehearsed").string();
  program rehearsal({"run", "softmax", "--gpus", "sleep:1ms:1", "--proposer", "sleep", "--workers",
    "1", "--budget", "2attempts", "--out", rehearsed});
  rehearsal.wait();
  program again({"resume", rehearsed, "--budget", "4attempts"});
  CHECK(again.wait() == 2);
  CHECK(again.err().find("a rehearsal (--proposer sleep) has no verdicts") != std::string::npos);
}

TEST_CASE("a log is shown by kind and time, and a misspelt kind is told") {
  tiny_run tiny;
  auto out = (tiny.folder / "run").string();
  program run({"run", (tiny.folder / "tiny_a").string(), "--seed", "3", "--budget", "1attempts",
    "--oracle", "native", "--out", out});
  run.wait();
  program verdicts({"log", "show", out, "--kind", "verdict", "--json", "--last", "1"});
  CHECK(verdicts.wait() == 0);
  CHECK(json::parse(verdicts.out()).at("kind") == "verdict");
  program nothing({"log", "show", out, "--since", "10h"});
  CHECK(nothing.wait() == 0);
  CHECK(nothing.out().empty());
  program wrong({"log", "show", out, "--kind", "verdit"});
  CHECK(wrong.wait() == 2);
  CHECK(wrong.err().find("verdict") != std::string::npos);
  program when({"log", "show", out, "--since", "soon"});
  CHECK(when.wait() == 2);
}
