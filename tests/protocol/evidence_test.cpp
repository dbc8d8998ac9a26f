#include "protocol/evidence.hpp"

#include "protocol/json_document.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

/// No field has its default.
evidence example() {
  evidence e;
  e.attempt = {"softmax", "cuda", 12};
  e.kind = attempt_kind::planted;
  e.effort = attempt_effort::probe;
  e.purpose = measure_purpose::promotion;
  e.candidate = {std::string(64, 'a'), {std::string(64, 'b'), 10}, {std::string(64, 'c'), 11},
    "file/x", std::string(64, 'd'), "fewer passes"};
  e.against = e.candidate;
  e.against.hash = std::string(64, 'e');
  e.toolchain = "clang-19.1.7";
  e.device = "NVIDIA H200";
  e.measured.attempt = e.attempt;
  e.measured.gpu = 3;
  e.measured.token = 77;
  e.measured.part = 2;
  e.measured.device = "cuda:h200";
  e.measured.origin = time_origin::measured;
  e.measured.held = std::chrono::nanoseconds{123};
  e.measured.failure_text = "nothing";
  e.measured.findings = {{"changes_global", "w", "byte 4", true}};
  workload_measurement m;
  m.uuid = "w";
  m.status = verdict_status::passed;
  m.time_ns = 10;
  m.samples_ns = {9, 10, 11};
  m.timing.method = "cupti";
  m.timing.digested = 5;
  m.timing.digests_equal = 4;
  m.blocks = {{true, 10, 1, 20}};
  e.measured.workloads = {m};
  workload_evaluation j;
  j.uuid = "w";
  j.status = verdict_status::incorrect_numerical;
  j.calls = 3;
  j.call = "set 2, timed 7";
  j.outputs.resize(1);
  j.outputs[0].output = "y";
  j.outputs[0].ulp_histogram = {1, 2, 3};
  j.outputs[0].relative_rms_error = 0.25;
  e.judged.workloads = {j};
  e.yardsticks = {{"w", 20, time_origin::modelled, 5, 1}};
  e.outputs = {{"y", "float32"}};
  e.narrowest_input_bits = 16;
  e.domain = "N % 8 == 0";
  e.compiled = {{"reads_clock", "", "%clock", false}};
  e.attempts = 13;
  e.retrials = 1;
  return e;
}

void refused(const std::string& text, const std::string& part) {
  auto read = evidence_from_json(text);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::invalid_input);
  CAPTURE(read.error().what);
  CHECK(read.error().what.find(part) != std::string::npos);
}

} // namespace

TEST_CASE("evidence is read as it was written") {
  const auto text = to_json(example());
  REQUIRE(text);
  auto read = evidence_from_json(*text);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  // The text names every field, so equal texts are equal evidence.
  CHECK(*to_json(*read) == *text);
  CHECK(read->attempt == example().attempt);
  CHECK(read->measured.attempt == example().attempt);
  CHECK(read->purpose == measure_purpose::promotion);
  CHECK(read->measured.held.count() == 123);
  CHECK(read->measured.workloads.at(0).timing.digests_equal == 4);
  CHECK(read->judged.workloads.at(0).outputs.at(0).ulp_histogram.size() == 3);
  CHECK(read->yardsticks.at(0).physical_ns == 1);
  CHECK(read->yardsticks.at(0).baseline_origin == time_origin::modelled);
  CHECK(text->find('\n') == std::string::npos);
}

TEST_CASE("evidence of nothing is evidence too") {
  auto text = to_json(evidence{});
  REQUIRE(text);
  auto read = evidence_from_json(*text);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  CHECK(*to_json(*read) == *text);
}

TEST_CASE("the reader of evidence is strict") {
  const auto good = ordered_json::parse(*to_json(example()));
  auto change = [&](auto edit) {
    auto bad = good;
    edit(bad);
    return bad.dump();
  };
  refused("", "evidence");
  refused("[]", "object");
  refused(change([](auto& j) { j["schema"] = "gristmill.evidence/2"; }), "schema");
  refused(change([](auto& j) { j["colour"] = 1; }), "colour");
  for (const auto& [key, value] : good.items()) {
    CAPTURE(key);
    refused(change([&](auto& j) { j.erase(key); }), key);
  }
  refused(change([](auto& j) { j["kind"] = "sarch"; }), "kind");
  refused(change([](auto& j) { j["attempt"]["ordinal"] = -1; }), "ordinal");
  refused(change([](auto& j) { j["measured"]["origin"] = "guessed"; }), "origin");
  refused(change([](auto& j) { j["yardsticks"][0]["floor_ns"] = "5"; }), "floor_ns");
  refused(change([](auto& j) { j["judged"][0]["outputs"][0]["ulp_histogram"][0] = -1; }),
    "ulp_histogram");
  refused(change([](auto& j) { j["compiled"][0].erase("rule"); }), "rule");
}

TEST_CASE("evidence that is too large is refused and not cut") {
  auto e = example();
  e.compiled.assign(20, {"r", "", std::string(size_t{1} << 20, 'x'), false});
  auto text = to_json(e);
  REQUIRE_FALSE(text);
  CHECK(text.error().code == errc::refused);
}
