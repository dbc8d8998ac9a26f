#include "report/run_page.hpp"

#include "report/html_page.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill;
using nlohmann::json;

namespace {

event at(double seconds, std::string kind, json data = json::object()) {
  event e;
  e.t = std::chrono::nanoseconds{static_cast<int64_t>(seconds * 1e9)};
  e.kind = std::move(kind);
  e.data = data.dump();
  return e;
}

event of_gpu(double seconds, std::string kind, std::string gpu, std::string attempt = {}) {
  event e = at(seconds, std::move(kind));
  e.gpu = std::move(gpu);
  e.attempt = std::move(attempt);
  return e;
}

event verdict_on(double seconds, const std::string& problem, const std::string& kind,
  double speedup, const std::string& status = "PASSED", const std::string& effort = "full") {
  event e = at(seconds, "verdict",
    {{"kind", kind}, {"status", status}, {"speedup", speedup}, {"effort", effort}});
  e.problem = problem;
  return e;
}

event finished(double seconds, double gpu_seconds) {
  return at(seconds, "attempt_finished", {{"gpu_ns", static_cast<uint64_t>(gpu_seconds * 1e9)}});
}

run_timeline timeline_of(const std::vector<event>& events) {
  auto timeline = read_timeline(events);
  REQUIRE(timeline.has_value());
  return *timeline;
}

} // namespace

TEST_CASE("progress counts a problem as 1 until something faster has passed") {
  const auto t = timeline_of(
    {verdict_on(1, "a", "baseline", 1), finished(1, 2), verdict_on(2, "b", "baseline", 1),
      finished(2, 1), verdict_on(3, "a", "search", 4), finished(3, 1)});
  REQUIRE(t.progress.size() == 3);
  CHECK(t.progress[1].geomean == doctest::Approx(1));
  // Two problems, one at 4x: the square root of 4.
  CHECK(t.progress[2].geomean == doctest::Approx(2));
  CHECK(t.progress[2].gpu_seconds == doctest::Approx(4));
}

TEST_CASE("a slower candidate, a failed one and a probe move no progress") {
  const auto t = timeline_of({verdict_on(1, "a", "baseline", 1), verdict_on(2, "a", "search", 0.5),
    verdict_on(3, "a", "search", 9, "INCORRECT_NUMERICAL"),
    verdict_on(4, "a", "search", 9, "PASSED", "probe"), finished(5, 1)});
  CHECK(t.progress.back().geomean == doctest::Approx(1));
}

TEST_CASE("a GPU is lent, measures, is verified and is free again") {
  const auto t = timeline_of({of_gpu(0, "gpu_up", "g0"), of_gpu(1, "lease_grant", "g0", "p/cuda/1"),
    of_gpu(2, "lease_active", "g0", "p/cuda/1"), of_gpu(5, "lease_release", "g0", "p/cuda/1"),
    of_gpu(6, "gpu_free", "g0"), of_gpu(9, "gpu_down", "g0")});
  REQUIRE(t.spans.size() == 3);
  CHECK(t.spans[0].activity == gpu_activity::granted);
  CHECK(t.spans[1].activity == gpu_activity::working);
  CHECK(t.spans[1].from == doctest::Approx(2));
  CHECK(t.spans[1].to == doctest::Approx(5));
  CHECK(t.spans[2].activity == gpu_activity::verifying);
  CHECK(t.spans[2].to == doctest::Approx(6));
}

TEST_CASE("what a killed run left open ends with its log") {
  const auto t = timeline_of({of_gpu(1, "lease_grant", "g0", "p/cuda/1"),
    of_gpu(2, "lease_active", "g0", "p/cuda/1"), at(7, "assigned")});
  CHECK(t.spans.back().to == doctest::Approx(7));
}

TEST_CASE("a quarantined GPU is out of service, a draining one works on") {
  const auto t = timeline_of({of_gpu(1, "lease_active", "g0"), of_gpu(2, "gpu_draining", "g0"),
    of_gpu(3, "lease_release", "g0"), of_gpu(4, "gpu_quarantined", "g0"),
    of_gpu(8, "gpu_up", "g0")});
  REQUIRE(t.spans.size() == 3);
  CHECK(t.spans[0].to == doctest::Approx(3));
  CHECK(t.spans[2].activity == gpu_activity::out_of_service);
  CHECK(t.spans[2].to == doctest::Approx(8));
}

TEST_CASE("a wait is from the request to the grant of the same attempt") {
  auto request = at(1, "lease_request");
  request.attempt = "p/cuda/1";
  const auto t = timeline_of({request, of_gpu(3.5, "lease_grant", "g0", "p/cuda/1"),
    of_gpu(9, "lease_grant", "g0", "q/cuda/1")});
  REQUIRE(t.waits.size() == 1);
  CHECK(t.waits[0] == doctest::Approx(2.5));
}

TEST_CASE("broken data is an error with its event") {
  auto bad = at(1, "verdict", {{"status", 3}});
  bad.seq = 17;
  const auto t = read_timeline(std::vector<event>{bad});
  REQUIRE(!t.has_value());
  CHECK(t.error().what.find("event 17 (verdict)") != std::string::npos);
  auto torn = at(1, "attempt_finished");
  torn.data = "{";
  CHECK(!read_timeline(std::vector<event>{torn}).has_value());
}

TEST_CASE("an empty log is an empty timeline") {
  CHECK(timeline_of({}).progress.empty());
}

TEST_CASE("the page holds table, charts, source and plan, and runs nothing") {
  run_page page;
  page.name = "<mine>";
  page.table.time_note = "MODELLED by mock-clock/1 uncalibrated for h200";
  problem_row row;
  row.name = "p";
  row.status = "PASSED";
  page.table.problems.push_back(row);
  winner best;
  best.problem = "p";
  best.hash = "h";
  best.key = "map/t256";
  page.winners.problems.push_back(best);
  page.texts["h"] = {
    "__global__ void k() { if (1 < 2) {} } // <script>alert(1)</script>", "{\"schema\":1}"};
  const auto html = to_html(page);
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(html.find("Gristmill run &lt;mine&gt;") != std::string::npos);
  CHECK(html.find("MODELLED") != std::string::npos);
  CHECK(html.find("1 &lt; 2") != std::string::npos);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("default-src 'none'") != std::string::npos);
  CHECK(html.find("{&quot;schema&quot;:1}") != std::string::npos);
  CHECK(html.find("src=") == std::string::npos);
  CHECK(html == to_html(page));
}

TEST_CASE("columns of numbers are marked and their sign is not shown") {
  const auto table = html_table({"name", "#n"}, {{"a", "1"}});
  CHECK(table.find("<th class=\"number\">n</th>") != std::string::npos);
  CHECK(table.find("<td class=\"number\">1</td>") != std::string::npos);
}
