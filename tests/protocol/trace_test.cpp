#include "protocol/trace.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

trace passed() {
  trace out;
  out.definition_name = "d";
  out.solution_name = "s";
  out.work.uuid = "u";
  out.work.axes = {{"N", 4}};
  out.work.inputs = {{"x", input_kind::random, int64_t{0}, "", ""}};
  out.evaluation.emplace();
  out.evaluation->status = trace_status::passed;
  out.evaluation->environment = {"NVIDIA H200", {{"torch", "2.7"}, {"cuda", "12.8"}}};
  out.evaluation->timestamp = "2026-11-30T12:00:00";
  out.evaluation->correctness.emplace();
  out.evaluation->performance = trace_performance{0.5, 1.0, 2.0};
  return out;
}

} // namespace

TEST_CASE("a trace is written in the order of the format, with all defaults") {
  CHECK(to_json(passed()).value()
    == R"({"definition":"d","workload":{"axes":{"N":4},"inputs":{"x":{"type":"random"}},"uuid":"u",)"
       R"("tolerance":{"max_atol":0.01,"max_rtol":0.01,"required_matched_ratio":0.99,)"
       R"("max_error_cap":null,"allow_negative_inf":false}},"solution":"s","evaluation":)"
       R"({"status":"PASSED","environment":{"hardware":"NVIDIA H200","libs":{"torch":"2.7",)"
       R"("cuda":"12.8"}},"timestamp":"2026-11-30T12:00:00","log":"","correctness":)"
       R"({"max_relative_error":0.0,"max_absolute_error":0.0,"has_nan":false,"has_inf":false,)"
       R"("extra":null},"performance":{"latency_ms":0.5,"reference_latency_ms":1.0,)"
       R"("speedup_factor":2.0}}})");
}

TEST_CASE("a workload trace has neither solution nor evaluation") {
  trace given = passed();
  given.solution_name.clear();
  given.evaluation.reset();
  CHECK(given.is_workload_trace());
  const auto written = to_json(given).value();
  CHECK(contains(written, R"("solution":null,"evaluation":null})"));
  CHECK(parse_trace(written, "t.jsonl", 1).value() == given);
  CHECK_FALSE(passed().is_workload_trace());
}

TEST_CASE("each status allows exactly its own numbers, when read and when written") {
  for (const auto& status_name : trace_status_names()) {
    const auto status = parse_trace_status(status_name).value();
    CHECK(name(status) == status_name);
    for (const bool correctness : {false, true}) {
      for (const bool performance : {false, true}) {
        CAPTURE(status_name);
        CAPTURE(correctness);
        CAPTURE(performance);
        trace given = passed();
        given.evaluation->status = status;
        if (!correctness)
          given.evaluation->correctness.reset();
        if (!performance)
          given.evaluation->performance.reset();
        const bool fits =
          correctness == has_correctness(status) && performance == has_performance(status);
        const auto written = to_json(given);
        CHECK(written.has_value() == fits);
        CHECK(check_trace(given).has_value() == fits);
        if (fits)
          CHECK(parse_trace(*written, "t.jsonl", 1).value() == given);
      }
    }
  }
  CHECK(has_correctness(trace_status::passed));
  CHECK(has_performance(trace_status::passed));
  CHECK(has_correctness(trace_status::incorrect_numerical));
  CHECK_FALSE(has_performance(trace_status::incorrect_numerical));
  CHECK_FALSE(has_correctness(trace_status::timeout));
  CHECK_FALSE(parse_trace_status("passed"));
}

TEST_CASE("an error that is not finite is written as the largest number, with a note") {
  trace given = passed();
  given.evaluation->correctness->max_relative_error = std::numeric_limits<double>::infinity();
  given.evaluation->correctness->max_absolute_error = std::nan("");
  given.evaluation->correctness->extra = {{"round", 3}};
  const auto written = to_json(given).value();
  const auto again = parse_trace(written, "t.jsonl", 1);
  REQUIRE(again);
  const auto& read = *again->evaluation->correctness;
  CHECK(read.max_relative_error == std::numeric_limits<double>::max());
  CHECK(read.max_absolute_error == std::numeric_limits<double>::max());
  CHECK(
    read.extra.dump() == R"({"round":3,"non_finite":["max_relative_error","max_absolute_error"]})");
  CHECK(to_json(*again).value() == written);
}

TEST_CASE("what would not be read is not written") {
  const auto refused = [](auto change) {
    trace given = passed();
    change(given);
    const auto written = to_json(given);
    REQUIRE_FALSE(written);
    return written.error().what;
  };
  CHECK(contains(refused([](trace& t) { t.definition_name = ""; }), "definition: "));
  CHECK(contains(refused([](trace& t) { t.work.uuid = ""; }), "workload.uuid: "));
  CHECK(contains(refused([](trace& t) { t.evaluation->environment.hardware = ""; }), "hardware"));
  CHECK(contains(refused([](trace& t) { t.evaluation->timestamp = ""; }), "timestamp"));
  CHECK(contains(
    refused([](trace& t) { t.evaluation->correctness->max_absolute_error = -1; }), "absolute"));
  CHECK(contains(refused([](trace& t) {
    t.evaluation->correctness->extra = {1, 2};
  }),
    "an object"));
  CHECK(contains(refused([](trace& t) {
    t.evaluation->correctness->extra = {{"deep", {{"x", std::nan("")}}}};
  }),
    "not finite"));
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(contains(
      refused([&](trace& t) { t.evaluation->performance->latency_ms = bad; }), "latency_ms"));
}

TEST_CASE("what the reader would refuse is refused before it is written, the workload included") {
  const auto refused = [](auto change) {
    trace given = passed();
    change(given);
    const auto fine = check_trace(given);
    REQUIRE_FALSE(fine);
    return fine.error().what;
  };
  CHECK(check_trace(passed()));
  CHECK(contains(
    refused([](trace& t) { t.work.axes.emplace_back("N_minus", -1); }), "workload.axes.N_minus"));
  CHECK(contains(refused([](trace& t) {
    input_spec blob;
    blob.name = "blob";
    blob.kind = input_kind::safetensors;
    t.work.inputs.push_back(blob);
  }),
    "workload.inputs.blob.path"));
  CHECK(contains(refused([](trace& t) {
    ordered_json deep = 1;
    for (int i = 0; i < 100; ++i)
      deep = ordered_json{{"d", deep}};
    t.evaluation->correctness->extra = deep;
  }),
    "nested deeper"));
}

TEST_CASE("an infinity in `extra` is read with a warning") {
  trace given = passed();
  given.evaluation->correctness->extra = {{"deep", {{"x", "here"}}}};
  auto text = to_json(given).value();
  text.replace(text.find("\"here\""), 6, "[1, -Infinity]");
  std::vector<std::string> warnings;
  REQUIRE(parse_trace(text, "t.jsonl", 1, &warnings));
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "t.jsonl:1: evaluation.correctness.extra: has a number that is not"));
}

TEST_CASE("a log of more than 5 MiB is cut at a character, and says so") {
  trace given = passed();
  for (int i = 0; i < 3'000'000; ++i)
    given.evaluation->log += "é";
  const auto again = parse_trace(to_json(given).value(), "t.jsonl", 1);
  REQUIRE(again);
  const auto& log = again->evaluation->log;
  CHECK(log.size() <= size_t{5} << 20);
  CHECK(log.size() > (size_t{5} << 20) - 10);
  CHECK(log.ends_with("é\n[cut: the log had 6000000 bytes]"));
}

TEST_CASE("Python's infinity is read with a warning, its NaN is refused") {
  auto text = to_json(passed()).value();
  const std::string zero = R"("max_relative_error":0.0)";
  const auto with = [&](const char* value) {
    auto changed = text;
    changed.replace(
      changed.find(zero), zero.size(), std::string{R"("max_relative_error":)"} + value);
    return changed;
  };
  std::vector<std::string> warnings;
  const auto read = parse_trace(with("Infinity"), "t.jsonl", 1, &warnings);
  REQUIRE(read);
  CHECK(std::isinf(read->evaluation->correctness->max_relative_error));
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "t.jsonl:1: evaluation.correctness.max_relative_error: infinite"));
  CHECK(contains(parse_trace(with("NaN"), "t.jsonl", 1).error().what, "not NaN"));
}

TEST_CASE("a trace file skips blank lines, counts all and names each wrong one") {
  const auto line = to_json(passed()).value();
  const auto two = parse_traces("\r\n" + line + "\r\n\n" + line, "t.jsonl");
  REQUIRE(two);
  CHECK(two->size() == 2);
  CHECK(parse_traces("", "t.jsonl")->empty());
  const auto what = parse_traces(line + "\n\n{}\nnot json\n", "t.jsonl").error().what;
  CHECK(contains(what, "t.jsonl:3: definition: a string is required\n"));
  CHECK(contains(what, "t.jsonl:4:1:"));
  CHECK(load_traces("no/such/file").error().code == errc::not_found);
}

TEST_CASE("a solution without an evaluation, or the other way round, is worth a warning") {
  trace given = passed();
  given.evaluation.reset();
  std::vector<std::string> warnings;
  REQUIRE(parse_trace(to_json(given).value(), "t.jsonl", 1, &warnings));
  CHECK(warnings.size() == 1);
  given = passed();
  given.solution_name.clear();
  REQUIRE(parse_trace(to_json(given).value(), "t.jsonl", 1, &warnings));
  CHECK(warnings.size() == 2);
}

TEST_CASE("the rule of the status is checked whatever is wrong outside of it") {
  const auto read = parse_trace(
    R"({"workload":{"uuid":"u","axes":{},"inputs":{}},"evaluation":{"status":"TIMEOUT","environment":{"hardware":"h"},"timestamp":"t","performance":{}}})",
    "t", 1);
  REQUIRE_FALSE(read);
  CHECK(read.error().what.find("definition: ") != std::string::npos);
  CHECK(read.error().what.find("evaluation.performance: ") != std::string::npos);
}
