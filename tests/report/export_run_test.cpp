#include "protocol/json_document.hpp"
#include "report/export_run.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using nlohmann::json;

namespace {

event about(std::string kind, std::string problem, std::string candidate, json data) {
  return {.wall = 1'796'076'062'123'456'789,
    .kind = std::move(kind),
    .problem = std::move(problem),
    .candidate = std::move(candidate),
    .data = data.dump()};
}

event started() {
  return about("run_started", "", "",
    {{"gpus", "mock:h200"}, {"toolchain", "clang-19.1.7"},
      {"time_note", "MODELLED by mock-clock/1 for h200"}, {"t_sol_method", "bytes, fused"},
      {"t_b_method", "a plain kernel"}, {"version", "0.1.0"}, {"seed", 7},
      {"problems", {"p", "q"}}});
}

event judged(const std::string& candidate, const std::string& kind, uint64_t time_ns,
  const std::string& status = "PASSED") {
  json row{{"uuid", "u"}, {"status", status}, {"time_ns", time_ns}, {"baseline_ns", 4000},
    {"floor_ns", 1000}, {"speedup", 4000.0 / static_cast<double>(time_ns)}, {"sol_score", 0.5},
    {"max_absolute_error", 0.25}, {"max_relative_error", 0.5}, {"shrunken", true}};
  return about("verdict", "p", candidate,
    {{"kind", kind}, {"key", "k/" + candidate}, {"status", status}, {"origin", "MODELLED"},
      {"objective_ns", time_ns}, {"device", "mock:h200"}, {"workloads", {row}}});
}

event counted(const std::string& candidate) {
  return about(
    "attempt_finished", "p", candidate, {{"source", "s" + candidate}, {"plan", "p" + candidate}});
}

std::vector<event> log() {
  return {started(), judged("base", "baseline", 4000), counted("base"),
    judged("slow", "search", 3000), counted("slow"), judged("fast", "search", 2000),
    counted("fast"), judged("wrong", "search", 500, "INCORRECT_NUMERICAL"), counted("wrong"),
    about("run_ended", "", "", json::object())};
}

problem target() {
  problem out;
  out.name = "p";
  out.def.name = "full_p";
  out.workloads.resize(1);
  out.workloads[0].uuid = "u";
  return out;
}

} // namespace

TEST_CASE("the fastest candidate that passed is exported, the baseline where nothing was faster") {
  auto events = log();
  auto run = read_winners(events);
  REQUIRE_MESSAGE(run, (run ? "" : run.error().what));
  REQUIRE(run->problems.size() == 2);
  CHECK(run->problems[0].hash == "fast");
  CHECK(run->problems[0].source_sha256 == "sfast");
  CHECK(run->problems[0].plan_sha256 == "pfast");
  CHECK(run->problems[1].hash.empty());
  CHECK(run->ended);
  events.erase(events.begin() + 3, events.begin() + 7);
  run = read_winners(events);
  REQUIRE(run);
  CHECK(run->problems[0].hash == "base");
  CHECK(run->problems[0].kind == "baseline");
}

TEST_CASE("a log that is none, or does not say a winner's texts, is refused") {
  CHECK_FALSE(read_winners({}));
  const std::vector<event> killed{started(), judged("fast", "search", 2000)};
  const auto run = read_winners(killed);
  REQUIRE_FALSE(run);
  CHECK(run.error().what.find("which texts candidate fast has") != std::string::npos);
  auto bad = log();
  bad[1].data = R"({"status":"PASSED","objective_ns":-1})";
  CHECK(read_winners(bad).error().what.find("event 0 (verdict)") != std::string::npos);
}

TEST_CASE("traces of modelled times say so, are valid, and claim nothing about the reference") {
  const auto events = log();
  const auto run = read_winners(events);
  REQUIRE(run);
  const auto traces = traces_of(*run, run->problems[0], target(), "mine");
  REQUIRE_MESSAGE(traces, (traces ? "" : traces.error().what));
  REQUIRE(traces->size() == 1);
  const auto& e = *traces->front().evaluation;
  CHECK(traces->front().definition_name == "full_p");
  CHECK(e.status == trace_status::passed);
  CHECK(e.environment.hardware == "mock:h200");
  CHECK(e.correctness->extra["origin"] == "MODELLED");
  CHECK(e.correctness->extra["checked_on"] == "a smaller twin of the workload");
  CHECK(e.correctness->max_absolute_error == 0.25);
  CHECK(e.performance->latency_ms == 0.002);
  CHECK(e.performance->reference_latency_ms == 0);
  CHECK(e.performance->speedup_factor == 0);
  CHECK(e.log.find("MODELLED") != std::string::npos);
  CHECK(e.timestamp == "2026-11-30T22:01:02.123456");
  const auto line = to_json(traces->front());
  REQUIRE(line);
  CHECK(parse_trace(*line, "t", 1));
  auto other = target();
  other.workloads[0].uuid = "v";
  CHECK_FALSE(traces_of(*run, run->problems[0], other, "mine"));
}

TEST_CASE("the tables have a row for every workload and for every problem, solved or not") {
  const auto events = log();
  auto run = read_winners(events);
  REQUIRE(run);
  const auto combined = combined_metrics(*run);
  CHECK(combined.find("p,u,PASSED,fast,mock:h200,MODELLED,0.004,0.001,0.002,2,0.5,false\n")
    != std::string::npos);
  CHECK(combined.find("q,,no candidate,") != std::string::npos);
  const auto problems = problem_metrics(*run);
  REQUIRE(problems);
  CHECK(problems->find("p,PASSED,fast,search,mock:h200,MODELLED,1,1,0,0.75,0.75,2,2,1,0.002\n")
    != std::string::npos);
  CHECK(problems->find("q,no candidate,,,,,0,0,0,0,0,1,1,0,\n") != std::string::npos);
  run->problems[0].definition_name = "a,\"b\"";
  CHECK(combined_metrics(*run).find("\"a,\"\"b\"\"\",u,") != std::string::npos);
}

TEST_CASE("the run's own bounds make a table that can be read and scored against") {
  const auto events = log();
  const auto run = read_winners(events);
  REQUIRE(run);
  const auto table = parse_bounds(to_json(bounds_of(*run, "r1")), "bounds.json");
  REQUIRE_MESSAGE(table, (table ? "" : table.error().what));
  CHECK(table->device == "mock:h200");
  CHECK(table->clock == "MODELLED by mock-clock/1 for h200");
  CHECK(table->date == "2026-11-30");
  CHECK(table->t_sol_method == "bytes, fused");
  CHECK(table->t_b_method == "a plain kernel");
  CHECK(*table->find("p", "u") == workload_bounds{1000, 4000});
}
