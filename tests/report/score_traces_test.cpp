#include "protocol/json_document.hpp"
#include "report/score_traces.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace gristmill;

namespace {

trace traced(const char* problem, const char* uuid, double latency_ms, const char* solution = "s") {
  trace out;
  out.definition_name = problem;
  out.work.uuid = uuid;
  out.solution_name = solution;
  auto& e = out.evaluation.emplace();
  e.environment.hardware = "NVIDIA B200";
  e.status = latency_ms > 0 ? trace_status::passed : trace_status::runtime_error;
  if (latency_ms > 0) {
    e.correctness.emplace();
    e.performance = trace_performance{latency_ms, 0, 0};
  }
  return out;
}

/// Two problems with T_b 4 ms and T_SOL 1 ms throughout: L1/a with workloads u and v, b with w.
struct score_fixture {
  score_request request;

  score_fixture() {
    auto& t = request.bounds;
    t.source = "test";
    t.date = "2026-11-30";
    t.device = "B200";
    t.clock = "locked";
    t.order = {"L1/a", "b"};
    t.problems["L1/a"]["u"] = t.problems["L1/a"]["v"] = t.problems["b"]["w"] = {1e6, 4e6};
    request.bounds_sha256 = std::string(64, 'a');
    request.bounds_file = "bounds.json";
    request.files = {
      {"x.jsonl", {traced("L1/a", "u", 4), traced("L1/a", "v", 1), traced("b", "w", 4, "other")}}};
  }

  trace& at(size_t i) { return request.files[0].traces[i]; }

  trace_score good() const {
    auto out = score_traces(request);
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return *out;
  }

  std::string bad() const {
    auto out = score_traces(request);
    REQUIRE_FALSE(out);
    return out.error().what;
  }
};

bool has(const std::string& text, const char* part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CAPTURE(part);
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE("traces are scored against the table: workload, problem, category, suite") {
  score_fixture f;
  const auto out = f.good();
  REQUIRE(out.suite.problems.size() == 2);
  CHECK(out.suite.problems[0].score_mean == doctest::Approx(0.75));
  CHECK(out.suite.problems[0].workloads[0].score == doctest::Approx(0.5));
  CHECK(out.suite.all.score_mean == doctest::Approx(0.625));
  REQUIRE(out.suite.categories.size() == 2);
  CHECK(out.suite.categories[0].name == "L1");
  CHECK(out.suite.categories[1].name == "uncategorised");
  CHECK(out.hardware == "NVIDIA B200");
  CHECK_FALSE(out.modelled);
}

TEST_CASE("the category comes from the table, then the folder, then the problem's name") {
  score_fixture f;
  f.request.bounds.categories["b"] = "Quant";
  CHECK(f.good().suite.problems[1].category == "Quant");
  f.request.bounds.categories.clear();
  f.request.problems = {{"L1/a", "", {"u", "v"}}, {"b", "L2", {"w"}}};
  CHECK(f.good().suite.problems[1].category == "L2");
  CHECK(category_of("x") == "uncategorised");
  CHECK(category_of("L2/x/y") == "L2");
}

TEST_CASE("a missing workload and a missing problem keep their denominators") {
  score_fixture f;
  f.request.files[0].traces.resize(1);
  const auto out = f.good();
  CHECK(out.suite.problems[0].total == 2);
  CHECK(out.suite.problems[0].missing == 1);
  CHECK(out.suite.problems[0].score_mean == doctest::Approx(0.25));
  CHECK(out.suite.problems[1].missing == 1);
  CHECK(out.suite.all.problems == 2);
  CHECK(out.suite.all.score_mean == doctest::Approx(0.125));
  f.request.files.clear();
  CHECK(f.good().suite.all.score_mean == 0);
}

TEST_CASE("two traces of one workload are refused: nobody chooses afterwards") {
  score_fixture f;
  f.request.files.push_back({"y.jsonl", {traced("b", "w", 3, "other")}});
  const auto what = f.bad();
  has(what, "y.jsonl: a second trace of b, workload `w`; the first is in x.jsonl");
}

TEST_CASE("two solutions of one problem are refused until one is chosen") {
  score_fixture f;
  f.at(1).solution_name = "t";
  has(f.bad(), "L1/a has traces of two solutions, `s` and `t`");
  f.request.solutions = {"s", "other"};
  const auto out = f.good();
  CHECK(out.suite.problems[0].missing == 1);
  CHECK(out.notes.size() == 1);
  f.request.solutions = {"q"};
  has(f.bad(), "--solution `q`: no trace is of it");
}

TEST_CASE(
  "traces of problems and workloads that the suite does not have are refused with the nearest") {
  score_fixture f;
  f.at(2).definition_name = "L1/b";
  has(f.bad(), "x.jsonl: a trace of `L1/b`, which is no problem of the suite");
  score_fixture g;
  g.at(1).work.uuid = "x";
  has(g.bad(), "a trace of workload `x`, which L1/a does not have");
  score_fixture h;
  h.request.problems = {{"b", "", {"w"}}};
  has(h.bad(), "`L1/a`, which is no problem of the suite");
}

TEST_CASE("the problems that are given must be in the table, whole") {
  score_fixture f;
  f.request.problems = {{"L1/a", "", {"u", "v", "z"}}};
  has(f.bad(), "problems.L1/a.`z`: missing, and a table must cover the whole problem");
  f.request.problems = {{"c", "", {"u"}}};
  has(f.bad(), "problems.c: missing");
  f.request.problems = {{"b", "", {"w", "w"}}};
  has(f.bad(), "two workloads have the uuid");
}

TEST_CASE("a table without the clocks' state or its hash gives no score") {
  score_fixture f;
  f.request.bounds.clock.clear();
  has(f.bad(), "clock: missing");
  score_fixture g;
  g.request.bounds_sha256.clear();
  has(g.bad(), "by hash");
}

TEST_CASE("devices are never mixed; another device than the table's must be named") {
  score_fixture f;
  f.at(1).evaluation->environment.hardware = "NVIDIA H200";
  has(f.bad(), "traces of two devices");
  score_fixture g;
  for (size_t i = 0; i < 3; ++i)
    g.at(i).evaluation->environment.hardware = "NVIDIA H200";
  has(g.bad(), "the table is for `B200`");
  g.request.other_device = "H200";
  const auto out = g.good();
  CHECK(out.other_device);
  has(to_text(out), "ANOTHER DEVICE");
  g.request.other_device = "H100";
  has(g.bad(), "--device H100: the traces are of `NVIDIA H200`");
  score_fixture h;
  h.request.other_device = "B200";
  has(h.bad(), "the table's own device");
  CHECK(is_same_device("NVIDIA B200", "b200"));
  CHECK_FALSE(is_same_device("NVIDIA H100", "NVIDIA H100 PCIe"));
}

TEST_CASE("modelled times are called so and never stand beside measured ones") {
  score_fixture f;
  for (size_t i = 0; i < 3; ++i)
    f.at(i).evaluation->correctness->extra = ordered_json{{"origin", "MODELLED"}};
  const auto out = f.good();
  CHECK(out.modelled);
  has(to_text(out), "times MODELLED, not measured");
  CHECK(ordered_json::parse(to_json(out))["modelled"] == true);
  f.at(1).evaluation->correctness->extra = nullptr;
  has(f.bad(), "modelled times beside measured ones");
}

TEST_CASE("a time below the bound is listed with its raw value and counts when it was audited") {
  score_fixture f;
  f.at(1).evaluation->performance->latency_ms = 0.5;
  auto out = f.good();
  CHECK(out.suite.problems[0].need_audit == 1);
  CHECK(out.suite.problems[0].score_mean == doctest::Approx(0.25));
  has(to_text(out), "T_k 500000 ns is below T_SOL 1000000 ns; counts 0");
  f.request.audited = {"L1/a:v"};
  out = f.good();
  CHECK(out.suite.problems[0].score_mean == doctest::Approx(0.75));
  has(to_text(out), "audited by the user");
  f.request.audited = {"L1/a:u"};
  has(f.bad(), "nothing to audit");
  f.request.audited = {"L1/a:q"};
  has(f.bad(), "write PROBLEM:UUID");
}

TEST_CASE("a PASSED trace without a positive latency is refused") {
  score_fixture f;
  f.at(0).evaluation->performance->latency_ms = 0;
  has(f.bad(), "PASSED without a positive latency");
}

TEST_CASE("traces without an evaluation are counted in a note") {
  score_fixture f;
  trace only;
  only.definition_name = "b";
  only.work.uuid = "w";
  f.request.files[0].traces.push_back(only);
  const auto out = f.good();
  REQUIRE(out.notes.size() == 1);
  has(out.notes[0], "1 traces without an evaluation");
}

TEST_CASE("the text fits 110 columns and carries the provenance; the JSON carries every workload") {
  score_fixture f;
  f.request.bounds.problems["b"]["w"] = {3.9e6, 4e6};
  f.request.bounds.source = std::string(300, 'x') + "\x1b[31m";
  const auto out = f.good();
  const auto text = to_text(out);
  for (size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    CHECK_MESSAGE(end - begin <= 110, text.substr(begin, end - begin));
    begin = end + 1;
  }
  CHECK(text.find('\x1b') == std::string::npos);
  has(text, std::string(64, 'a').c_str());
  has(text, "clocks locked");
  has(text, "where the score amplifies noise");
  const auto json = ordered_json::parse(to_json(out));
  CHECK(json["bounds"]["sha256"] == std::string(64, 'a'));
  CHECK(json["problems"][0]["workloads"].size() == 2);
  CHECK(json["problems"][0]["solution"] == "s");
  CHECK(json["suite"]["score_median"].is_number());
}
