#include "simulation/report/lab_page.hpp"

#include "simulation/report/lab_trace.hpp"
#include "tests/simulation/report/made_up.hpp"

#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace gristmill;
using namespace gristmill::test;

namespace {

const lab_identity program{"1.2.3", "abcdef0123456789"};

event at(double seconds, const char* kind, const char* gpu, const char* attempt) {
  event e;
  e.t = std::chrono::nanoseconds{static_cast<int64_t>(seconds * 1e9)};
  e.kind = kind;
  e.gpu = gpu;
  e.attempt = attempt;
  return e;
}

/// Two GPUs, three requests, odd times.
std::vector<event> some_events() {
  return {at(0, "gpu_up", "gpu#0", ""), at(0, "gpu_up", "gpu#1", ""),
    at(0.1, "lease_request", "", "a/1"), at(0.1, "lease_grant", "gpu#0", "a/1"),
    at(0.2, "lease_request", "", "b/1"), at(0.2, "lease_grant", "gpu#1", "b/1"),
    at(0.25, "lease_request", "", "c/1"), at(1.0 / 3, "lease_active", "gpu#0", "a/1"),
    at(0.4, "lease_active", "gpu#1", "b/1"), at(2.0 / 3, "lease_release", "gpu#0", "a/1"),
    at(0.7000000019, "gpu_free", "gpu#0", ""), at(0.7000000019, "lease_grant", "gpu#0", "c/1"),
    at(0.8, "lease_active", "gpu#0", "c/1"), at(0.9, "lease_release", "gpu#1", "b/1")};
}

} // namespace

TEST_CASE("the page is one file of its own: no script, nothing from outside, every parameter") {
  const auto plan = made_up_plan({"equal", "mine", "oracle"}, 3);
  const auto rows = made_up_rows(plan);
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  const auto events = some_events();
  const lab_page page{plan, *summary, rows, program, events, 30};
  const auto html = to_html(page);
  REQUIRE(html);
  CHECK(html->find("<script") == std::string::npos);
  CHECK(html->find("<link") == std::string::npos);
  CHECK(html->find("src=") == std::string::npos);
  CHECK(html->find("href=") == std::string::npos);
  for (const std::string& part :
    {std::string("SIMULATED"), program.build, plan.variants[1].config, summary->variants[2].digest,
      std::string("no planner can know"), std::string("Geometric mean against GPU-hours"),
      std::string("How long leases were waited"), std::string("tenths of the agents"),
      std::string("What the GPUs"), std::string("first 30 minutes"), std::string("gpu#1"),
      std::string("duration = ")}) {
    CAPTURE(part);
    CHECK(html->find(part) != std::string::npos);
  }
  CHECK(*to_html(page) == *html);
}

TEST_CASE("a page without problems, without events and with one seed leaves out what it lacks") {
  auto plan = made_up_plan({"equal"}, 1);
  plan.variants[0].what.problems = 0;
  auto rows = made_up_rows(plan);
  rows[0].curve.clear();
  const auto summary = summarise(plan, rows);
  REQUIRE(summary);
  const auto html = to_html({plan, *summary, rows, program});
  REQUIRE(html);
  CHECK(html->find("GPU-hours under lease") == std::string::npos);
  CHECK(html->find("first 0 minutes") == std::string::npos);
  CHECK(html->find("One seed") != std::string::npos);
}

TEST_CASE("names from outside are text on the page, never markup") {
  auto plan = made_up_plan({"equal", "<img onerror=x>"}, 2);
  plan.name = "</title><script>";
  const auto rows = made_up_rows(plan);
  const auto summary = summarise(plan, rows);
  const auto html = to_html({plan, *summary, rows, program});
  REQUIRE(html);
  CHECK(html->find("<script") == std::string::npos);
  CHECK(html->find("<img") == std::string::npos);
}

TEST_CASE("a trace parses, has a track for each GPU, and no two spans of a track overlap") {
  const auto text = perfetto_trace(some_events(), "a \"title\"\n", program);
  REQUIRE(text);
  const auto json = nlohmann::json::parse(*text);
  CHECK(json.at("otherData").at("note") == "SIMULATED");
  std::map<int, double> end;
  std::map<int, std::string> names;
  std::vector<int> waiting;
  size_t spans = 0;
  for (const auto& e : json.at("traceEvents")) {
    const auto phase = e.at("ph").get<std::string>();
    if (phase == "M" && e.at("name") == "thread_name")
      names[e.at("tid").get<int>()] = e.at("args").at("name").get<std::string>();
    if (phase == "C")
      waiting.push_back(e.at("args").at("waiting").get<int>());
    if (phase != "X")
      continue;
    ++spans;
    const double from = e.at("ts").get<double>();
    double& last = end[e.at("tid").get<int>()];
    CHECK(from >= last - 1e-9);
    CHECK(e.at("dur").get<double>() >= 0);
    last = from + e.at("dur").get<double>();
  }
  CHECK(names.size() == 2);
  CHECK(names[1] == "gpu#0");
  CHECK(spans == 8);
  CHECK(waiting == std::vector<int>{1, 0, 1, 0, 1, 0});
}

TEST_CASE("a trace of nothing is a trace, and events of something else are refused") {
  const auto empty = perfetto_trace({}, "", program);
  REQUIRE(empty);
  CHECK(nlohmann::json::parse(*empty).at("traceEvents").size() == 1);
  event wrong;
  wrong.kind = "verdict";
  wrong.data = "[]";
  CHECK_FALSE(perfetto_trace(std::vector<event>{wrong}, "", program));
}

TEST_CASE("the journal of a simulated run begins with what it was") {
  const auto plan = made_up_plan({"equal"}, 1);
  const auto e = lab_run_event(plan.variants[0], 7, program);
  CHECK(e.kind == "lab_run");
  const auto data = nlohmann::json::parse(e.data);
  CHECK(data.at("simulated") == true);
  CHECK(data.at("seed") == 7);
  CHECK(data.at("config") == plan.variants[0].config);
  CHECK(data.dump() == e.data);
}
