#include "scoring/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

struct verdict_fixture {
  std::vector<workload_yardstick> bounds;
  measurement measured;
  evaluation judged;

  verdict_fixture() {
    measured.origin = time_origin::modelled;
    add("w1", 4000, 1000, 2000);
    add("w2", 4000, 1000, 1000);
  }

  void add(const std::string& uuid, uint64_t baseline, uint64_t floor, uint64_t time) {
    bounds.push_back({uuid, baseline, time_origin::modelled, floor});
    workload_measurement m;
    m.uuid = uuid;
    m.status = verdict_status::passed;
    m.time_ns = time;
    measured.workloads.push_back(m);
    workload_evaluation e;
    e.uuid = uuid;
    e.status = verdict_status::passed;
    e.outputs.push_back({});
    e.outputs.back().output = "y";
    e.outputs.back().passed = true;
    judged.workloads.push_back(e);
  }

  verdict decide(attempt_kind kind = attempt_kind::search, std::vector<finding> extra = {}) const {
    return make_verdict(kind, bounds, measured, judged, std::move(extra));
  }

  static bool found(const verdict& v, const std::string& rule) {
    return std::any_of(
      v.findings.begin(), v.findings.end(), [&](const finding& f) { return f.rule == rule; });
  }
};

} // namespace

TEST_CASE_FIXTURE(verdict_fixture, "a candidate that is right everywhere passes and is scored") {
  auto v = decide();
  CHECK(v.status == verdict_status::passed);
  CHECK(v.origin == time_origin::modelled);
  REQUIRE(v.workloads.size() == 2);
  CHECK(v.workloads[0].uuid == "w1");
  CHECK(v.workloads[0].time_ns == 2000);
  CHECK(v.workloads[0].baseline_ns == 4000);
  CHECK(double(v.workloads[0].speedup) == 2);
  CHECK(double(v.workloads[0].sol_score) == doctest::Approx(0.75));
  CHECK(double(v.workloads[1].sol_score) == 1);
  CHECK(v.objective_ns == 1414);
  CHECK(double(v.speedup) == doctest::Approx(std::sqrt(8.0)));
  CHECK(double(v.sol_score) == doctest::Approx(0.875));
  CHECK(double(v.floor_share) == doctest::Approx(std::sqrt(0.5)));
  CHECK(v.findings.empty());
}

TEST_CASE_FIXTURE(verdict_fixture, "one wrong workload fails the whole and keeps its denominator") {
  judged.workloads[1].status = verdict_status::incorrect_numerical;
  judged.workloads[1].detail = "3 of 8 elements differ";
  auto v = decide();
  CHECK(v.status == verdict_status::incorrect_numerical);
  CHECK(v.reason.find("w2") != std::string::npos);
  CHECK(v.reason.find("3 of 8") != std::string::npos);
  CHECK(double(v.sol_score) == doctest::Approx(0.75 / 2));
  CHECK(v.objective_ns == 0);
  CHECK(double(v.speedup) == 0);
  CHECK(double(v.floor_share) == 0);
}

TEST_CASE_FIXTURE(
  verdict_fixture, "a warning of the judge is a finding, and the candidate passes") {
  judged.workloads[1].detail = "warning: `y` holds integers that differ";
  auto v = decide();
  CHECK(v.status == verdict_status::passed);
  REQUIRE(v.findings.size() == 1);
  CHECK(v.findings[0].rule == "judge_warning");
  CHECK(v.findings[0].workload == "w2");
  CHECK_FALSE(v.findings[0].fatal);
}

TEST_CASE_FIXTURE(verdict_fixture, "the status is that of the first workload that did not pass") {
  measured.workloads[0].status = verdict_status::timeout;
  judged.workloads[1].status = verdict_status::incorrect_shape;
  CHECK(decide().status == verdict_status::timeout);
  measured.workloads[0].status = verdict_status::passed;
  CHECK(decide().status == verdict_status::incorrect_shape);
}

TEST_CASE_FIXTURE(verdict_fixture, "what was not checked is never PASSED") {
  SUBCASE("no evaluation of the workload") {
    judged.workloads.pop_back();
  }
  SUBCASE("an evaluation that says so") {
    judged.workloads[1].status = verdict_status::not_checked;
  }
  SUBCASE("an evaluation that compared nothing") {
    judged.workloads[1].outputs.clear();
  }
  auto v = decide();
  CHECK(v.status == verdict_status::not_checked);
  CHECK(v.workloads[1].status == verdict_status::not_checked);
  CHECK(v.workloads[0].status == verdict_status::passed);
  CHECK(double(v.workloads[1].sol_score) == 0);
}

TEST_CASE_FIXTURE(verdict_fixture, "a judge that says passed over a wrong output is not believed") {
  judged.workloads[0].outputs[0].passed = false;
  CHECK(decide().status == verdict_status::incorrect_numerical);
}

TEST_CASE_FIXTURE(verdict_fixture, "a missing workload or time fails as infrastructure") {
  SUBCASE("missing") {
    measured.workloads.pop_back();
  }
  SUBCASE("no time") {
    measured.workloads[1].time_ns = 0;
  }
  auto v = decide();
  CHECK(v.status == verdict_status::infrastructure);
  CHECK(v.workloads.size() == 2);
}

TEST_CASE_FIXTURE(verdict_fixture, "a workload that the problem does not have earns nothing") {
  bounds.pop_back();
  auto v = decide();
  CHECK(v.workloads.size() == 1);
  bounds.clear();
  CHECK(decide().status == verdict_status::not_checked);
}

TEST_CASE_FIXTURE(verdict_fixture, "the first of two reports of a workload counts and it shows") {
  auto again = judged.workloads[0];
  judged.workloads[0].status = verdict_status::incorrect_numerical;
  judged.workloads.push_back(again);
  auto v = decide();
  CHECK(v.status == verdict_status::incorrect_numerical);
  CHECK(found(v, "reported_twice"));
}

TEST_CASE_FIXTURE(verdict_fixture, "a baseline attempt is its own T_b") {
  auto v = decide(attempt_kind::baseline);
  CHECK(double(v.speedup) == 1);
  CHECK(double(v.workloads[0].sol_score) == 0.5);
  CHECK(v.workloads[0].baseline_ns == 2000);
}

TEST_CASE_FIXTURE(verdict_fixture, "without a baseline there is no speed-up and no score") {
  bounds[1].baseline_ns = 0;
  auto v = decide();
  CHECK(v.status == verdict_status::passed);
  CHECK(double(v.workloads[1].speedup) == 0);
  CHECK(double(v.speedup) == 0);
  CHECK(double(v.sol_score) == doctest::Approx(0.75 / 2));
  CHECK(v.objective_ns > 0);
}

TEST_CASE_FIXTURE(verdict_fixture, "without a floor there is a speed-up but no score") {
  bounds[0].floor_ns = 0;
  auto v = decide();
  CHECK(double(v.speedup) == doctest::Approx(std::sqrt(8.0)));
  CHECK(double(v.workloads[0].sol_score) == 0);
  CHECK(double(v.floor_share) == 0);
}

TEST_CASE_FIXTURE(verdict_fixture, "times of two origins are never compared") {
  bounds[0].baseline_origin = time_origin::measured;
  auto v = decide();
  CHECK(found(v, "other_origin"));
  CHECK(v.workloads[0].baseline_ns == 0);
  CHECK(double(v.workloads[0].speedup) == 0);
  CHECK(v.status == verdict_status::passed);
}

TEST_CASE_FIXTURE(verdict_fixture, "a time below the floor waits for an audit and leads nowhere") {
  measured.workloads[0].time_ns = 999;
  auto v = decide();
  CHECK(v.status == verdict_status::passed);
  CHECK(v.workloads[0].needs_audit);
  CHECK(v.workloads[0].time_ns == 999);
  CHECK(double(v.workloads[0].sol_score) == 0);
  CHECK(found(v, "below_floor"));
  CHECK(v.objective_ns == 0);
  CHECK(double(v.speedup) == 0);
  CHECK(double(v.sol_score) == doctest::Approx(0.5));
  CHECK(v.reason.find("audit") != std::string::npos);
  measured.workloads[0].time_ns = 1000;
  CHECK_FALSE(decide().workloads[0].needs_audit);
}

TEST_CASE_FIXTURE(
  verdict_fixture, "a fatal finding refuses its workload, one without a workload all") {
  auto one = decide(attempt_kind::search, {{"writes_input", "w2", "x changed", true}});
  CHECK(one.status == verdict_status::reward_hack);
  CHECK(one.workloads[0].status == verdict_status::passed);
  CHECK(one.workloads[1].status == verdict_status::reward_hack);
  CHECK(double(one.workloads[1].sol_score) == 0);
  CHECK(double(one.sol_score) == doctest::Approx(0.75 / 2));
  CHECK(one.reason.find("x changed") != std::string::npos);
  auto all = decide(attempt_kind::search, {{"unexpected_entry", "", "extra", true}});
  CHECK(all.workloads[0].status == verdict_status::reward_hack);
  CHECK(double(all.sol_score) == 0);
  auto note = decide(attempt_kind::search, {{"odd", "w1", "a note", false}});
  CHECK(note.status == verdict_status::passed);
  CHECK(found(note, "odd"));
}

TEST_CASE_FIXTURE(verdict_fixture, "a runner that saw an input written makes it a finding") {
  measured.workloads[0].status = verdict_status::reward_hack;
  measured.workloads[0].detail = "input 'x' was written";
  auto v = decide();
  CHECK(v.status == verdict_status::reward_hack);
  CHECK(found(v, "writes_input"));
}

TEST_CASE_FIXTURE(verdict_fixture, "a refused candidate fails on every workload") {
  compiled_candidate compiled;
  compiled.log = "error: expected ';'\nmore";
  auto v = refused_verdict(bounds, compiled);
  CHECK(v.status == verdict_status::compile_error);
  CHECK(v.workloads.size() == 2);
  CHECK(v.workloads[1].status == verdict_status::compile_error);
  CHECK(v.reason == "COMPILE_ERROR: error: expected ';'");
  CHECK(double(v.sol_score) == 0);
  compiled.status = verdict_status::reward_hack;
  CHECK(found(refused_verdict(bounds, compiled), "unexpected_entry"));
  // Nobody asks about these; if somebody does, it is no pass.
  compiled.status = verdict_status::passed;
  CHECK(refused_verdict(bounds, compiled).status == verdict_status::infrastructure);
}
