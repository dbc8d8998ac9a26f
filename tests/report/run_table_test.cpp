#include "report/run_table.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace gristmill;
using nlohmann::json;

namespace {

event about(std::string kind, std::string problem, json data, std::string reason = {}) {
  return {.kind = std::move(kind),
    .problem = std::move(problem),
    .reason = std::move(reason),
    .data = data.dump()};
}

event start_of(std::vector<std::string> problems) {
  return about("run_started", "",
    {{"gpus", "mock:h200:2"}, {"toolchain", "clang-19.1.7"}, {"time_note", "MODELLED"}, {"seed", 7},
      {"seed_given", true}, {"problems", problems}});
}

event end_of(std::string reason, bool clean = true) {
  return about("run_ended", "", {{"clean", clean}}, std::move(reason));
}

event prepared(
  const std::string& problem, const std::string& status = "PASSED", std::string reason = {}) {
  return about("problem_prepared", problem, {{"status", status}}, std::move(reason));
}

json workload(const std::string& uuid, const std::string& bound, uint64_t baseline_ns,
  uint64_t floor_ns = 500, uint64_t time_ns = 1000) {
  return {{"uuid", uuid}, {"status", "PASSED"}, {"time_ns", time_ns}, {"floor_ns", floor_ns},
    {"baseline_ns", baseline_ns}, {"bound", bound}};
}

event verdict_on(const std::string& problem, const std::string& kind, const std::string& status,
  uint64_t objective_ns, double speedup = 0, json workloads = json::array()) {
  auto e = about("verdict", problem,
    {{"kind", kind}, {"status", status}, {"objective_ns", objective_ns}, {"speedup", speedup},
      {"floor_share", 0.5}, {"sol_score", 0.6}, {"key", kind + "-key"},
      {"workloads", std::move(workloads)}});
  e.candidate = kind + "-" + std::to_string(objective_ns);
  return e;
}

event finished(const std::string& problem, const std::string& kind, const std::string& outcome,
  uint64_t gpu_ns, json more = json::object(), std::string reason = {}) {
  json data{{"kind", kind}, {"outcome", outcome}, {"gpu_ns", gpu_ns}};
  data.update(more);
  return about("attempt_finished", problem, data, std::move(reason));
}

run_table table_of(const std::vector<event>& events) {
  auto table = make_run_table(events);
  REQUIRE_MESSAGE(table, (table ? "" : table.error().what));
  return *table;
}

std::string refusal_of(const std::vector<event>& events) {
  auto table = make_run_table(events);
  REQUIRE_FALSE(table);
  CHECK(table.error().code == errc::invalid_input);
  return table.error().what;
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    widest = std::max(widest,
      static_cast<size_t>(std::count_if(line.begin(), line.end(),
        [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; })));
  return widest;
}

} // namespace

TEST_CASE("the best passed candidate of a problem makes its row") {
  auto t = table_of({start_of({"softmax"}), prepared("softmax"),
    verdict_on("softmax", "baseline", "PASSED", 4000, 1.0),
    finished("softmax", "baseline", "judged", 100),
    verdict_on("softmax", "search", "PASSED", 1000, 4.0,
      {workload("a", "dram", 4000, 3000, 4000), workload("b", "dram", 4000, 10, 2000),
        workload("c", "launch", 4000, 10, 3000)}),
    finished("softmax", "search", "judged", 200),
    verdict_on("softmax", "search", "PASSED", 2000, 2.0),
    finished("softmax", "search", "judged", 300),
    verdict_on("softmax", "search", "RUNTIME_ERROR", 0),
    finished("softmax", "search", "judged", 400),
    finished("softmax", "search", "infrastructure", 500),
    about("problem_finished", "softmax", json::object(), "exhausted: nothing is left"),
    end_of("all problems are finished")});
  REQUIRE(t.problems.size() == 1);
  const auto& row = t.problems[0];
  CHECK(row.status == "PASSED");
  CHECK(row.baseline_ns == 4000);
  CHECK(row.best_ns == 1000);
  CHECK(row.speedup == 4.0);
  CHECK_MESSAGE(row.floor_share == 0.75, "of the workload with the largest floor");
  CHECK(row.sol_score == 0.6);
  CHECK(row.best_candidate == "search-1000");
  CHECK(row.best_key == "search-key");
  CHECK(row.limited_by == "dram 2/3, launch 1/3");
  CHECK(row.reason == "exhausted: nothing is left");
  CHECK_MESSAGE(row.attempts == 3, "judged ones; neither the baseline nor what the house broke");
  CHECK(row.gpu_ns == 1500);
  CHECK(t.gpu_ns == 1500);
  CHECK(t.attempts == 3);
  CHECK(t.seed == 7);
  CHECK(t.seed_given);
  CHECK(t.ended);
  CHECK(t.clean);
  CHECK(t.end_reason == "all problems are finished");
  CHECK(t.summary.passed_count == 1);
  CHECK(t.summary.geomean_all == doctest::Approx(4.0));
}

TEST_CASE("each way in which a problem ends has its status") {
  auto t = table_of({start_of({"a-unprepared", "b-no-verdict", "c-baseline-only", "d-bad-baseline",
                       "e-wrong", "f-invalid", "g-no-candidate"}),
    prepared("b-no-verdict"), prepared("c-baseline-only"),
    verdict_on("c-baseline-only", "baseline", "PASSED", 4000, 1.0), prepared("d-bad-baseline"),
    about("problem_finished", "d-bad-baseline", json::object(), "baseline failed: TIMEOUT: slow"),
    prepared("e-wrong"), verdict_on("e-wrong", "baseline", "PASSED", 4000, 1.0),
    verdict_on("e-wrong", "search", "INCORRECT_NUMERICAL", 0),
    prepared("f-invalid", "INVALID_REFERENCE", "workload u: it raised"), prepared("g-no-candidate"),
    about("problem_finished", "g-no-candidate", json::object(), "no candidate: no template")});
  std::vector<std::string> statuses;
  for (const auto& row : t.problems)
    statuses.push_back(row.status);
  CHECK(statuses
    == std::vector<std::string>{"not prepared", "no verdict", "no candidate", "baseline failed",
      "INCORRECT_NUMERICAL", "INVALID_REFERENCE", "no candidate"});
  CHECK(t.problems[5].reason == "workload u: it raised");
  CHECK(t.problems[2].best_ns == 4000);
  CHECK_MESSAGE(t.summary.with_baseline == 2, "a failed problem with a baseline counts 1.0x");
  CHECK(t.summary.geomean_all == doctest::Approx(1.0));
  CHECK(t.summary.problems == 7);
}

TEST_CASE("a problem with a bounds table has the T_b of the table") {
  json workloads{workload("a", "dram", 2000), workload("b", "dram", 8000)};
  auto t = table_of({start_of({"p", "q"}), prepared("p"), prepared("q"),
    verdict_on("p", "search", "PASSED", 1000, 4.0, workloads),
    verdict_on("q", "search", "INCORRECT_NUMERICAL", 0, 0, workloads)});
  CHECK(t.problems[0].baseline_ns == 4000);
  CHECK(t.problems[1].baseline_ns == 4000);
  CHECK(t.summary.with_baseline == 2);
  CHECK(t.summary.geomean_all == doctest::Approx(2.0));
}

TEST_CASE("a candidate given by file has a row of its own, with or without a verdict") {
  auto t = table_of({start_of({"p"}), prepared("p"),
    finished("p", "planted", "judged", 1, {{"key", "mine.cu"}, {"status", "COMPILE_ERROR"}},
      "expected ';'"),
    finished("p", "planted", "infrastructure", 1, {{"key", "other.cu"}}, "the judge died")});
  REQUIRE(t.planted.size() == 2);
  CHECK(t.planted[0].key == "mine.cu");
  CHECK(t.planted[0].status == "COMPILE_ERROR");
  CHECK(t.planted[0].reason == "expected ';'");
  CHECK(t.planted[1].status == "infrastructure");
  CHECK(to_text(t).find("mine.cu") != std::string::npos);
}

TEST_CASE("a log without its end is the log of a run that goes on or was killed") {
  auto t = table_of({start_of({"p"}), prepared("p")});
  CHECK_FALSE(t.ended);
  CHECK_FALSE(t.clean);
  CHECK(to_text(t).find("goes on or was killed") != std::string::npos);
  CHECK(json::parse(to_json(t)).at("ended") == false);
}

TEST_CASE("a log that does not begin with the start of its run is refused") {
  CHECK(refusal_of({}).find("run_started") != std::string::npos);
  CHECK(refusal_of({prepared("p")}).find("run_started") != std::string::npos);
}

TEST_CASE("data that is not what its kind has is refused with the number of the event") {
  auto refused = [](event wrong) {
    wrong.seq = 42;
    auto text = refusal_of({start_of({"p"}), wrong});
    CHECK(text.find("event 42 (" + wrong.kind + ")") != std::string::npos);
  };
  event text = prepared("p");
  text.data = "{";
  refused(text);
  text.data = "[1]";
  refused(text);
  refused(about("problem_prepared", "p", {{"status", 3}}));
  refused(about("problem_prepared", "p", json::object()));
  refused(about("verdict", "p", {{"kind", "search"}, {"status", "PASSED"}}));
  auto verdict_with = [](const char* key, json value) {
    auto e = verdict_on("p", "search", "PASSED", 1000, 1.0);
    auto data = json::parse(e.data);
    data[key] = std::move(value);
    e.data = data.dump();
    return e;
  };
  refused(verdict_with("objective_ns", -1));
  refused(verdict_with("objective_ns", "fast"));
  refused(verdict_with("speedup", true));
  refused(verdict_with("workloads", json::array({json{{"baseline_ns", -4}}})));
  refused(verdict_with("workloads", json::array({3})));
  refused(finished("p", "search", "judged", 0, {{"gpu_ns", -1}}));
  refused(finished("p", "search", "judged", 0, {{"gpu_ns", 1.5}}));
  auto start = json::parse(start_of({"p"}).data);
  start["seed"] = -1;
  CHECK(refusal_of({about("run_started", "", start)}).find("seed") != std::string::npos);
}

TEST_CASE("kinds and problems that this build does not know are passed over") {
  auto t = table_of({start_of({"p"}), about("from_the_future", "p", {{"x", 1}}),
    about("verdict", "elsewhere", json::object()), about("gpu_up", "", json::object())});
  CHECK(t.problems.size() == 1);
}

TEST_CASE("the text keeps to its columns whatever strangers wrote") {
  std::string long_name(200, 'n');
  std::string accents;
  for (int i = 0; i < 150; ++i)
    accents += "é";
  std::string words;
  for (int i = 0; i < 60; ++i)
    words += "word ";
  auto start = json::parse(start_of({long_name, "p"}).data);
  start["time_note"] = words;
  start["baseline_note"] = accents;
  auto t = table_of({about("run_started", "", start), prepared(long_name), prepared("p"),
    about("problem_finished", "p", json::object(), accents + "\n\x1b[31m" + words),
    finished("p", "planted", "judged", 1, {{"key", long_name}, {"status", long_name}}, words),
    end_of(words)});
  auto text = to_text(t);
  CHECK(widest_line(text) <= 110);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find(long_name) == std::string::npos);
  auto words_shown = [&] {
    size_t n = 0;
    for (auto at = text.find("word"); at != std::string::npos; at = text.find("word", at + 1))
      ++n;
    return n;
  };
  CHECK_MESSAGE(words_shown() == 60 * 4, "wrapped, and nothing lost");
}

TEST_CASE("the JSON has every row and parses, also with bytes that are no UTF-8") {
  auto t =
    table_of({start_of({"p"}), prepared("p"), verdict_on("p", "baseline", "PASSED", 4000, 1.0),
      verdict_on("p", "search", "PASSED", 1000, 4.0),
      finished("p", "planted", "judged", 5, {{"key", "k"}, {"status", "PASSED"}}),
      end_of("drained", false)});
  t.digest = "abc";
  t.problems[0].reason = "\xff broken";
  auto out = json::parse(to_json(t));
  CHECK(out.at("schema") == "gristmill.table/1");
  CHECK(out.at("seed") == 7);
  CHECK(out.at("problems").at(0).at("best_ns") == 1000);
  CHECK(out.at("problems").at(0).at("speedup") == 4.0);
  CHECK(out.at("problems").at(0).at("candidate") == "search-1000");
  CHECK(out.at("planted").at(0).at("key") == "k");
  CHECK(out.at("summary").at("geomean") == doctest::Approx(4.0));
  CHECK(out.at("clean") == false);
  CHECK(out.at("end_reason") == "drained");
  CHECK(out.at("digest") == "abc");
}

TEST_CASE("a run without problems is an empty table") {
  auto t = table_of({start_of({}), end_of("nothing to do")});
  CHECK(t.problems.empty());
  CHECK(t.summary.problems == 0);
  CHECK(widest_line(to_text(t)) <= 110);
}
