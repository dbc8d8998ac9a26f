#include "protocol/child_answers.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

namespace {

constexpr const char* nonce = "0123456789abcdef";

std::string line(std::string_view kind, const ordered_json& body) {
  ordered_json all{{"line", kind}, {"nonce", nonce}};
  all.update(body);
  return all.dump();
}

std::vector<std::string> lines_with(const std::vector<ordered_json>& samples) {
  std::vector<std::string> all{line("hello", {{"program", "x"}}), line("phase", {{"name", "y"}})};
  for (const auto& sample : samples)
    all.push_back(line("sample", sample));
  all.push_back(line("done", ordered_json::object()));
  return all;
}

} // namespace

TEST_CASE("what a compiler answers survives the way to the parent") {
  compile_answer sent{"unit", verdict_status::reward_hack, "unit_0.ptx",
    {{"gemm<1>", "_Z4gemm"}, {"f", "f"}}, "log", "clang-19.1.7", {{"rule", "", "why", true}}};
  auto read = read_compile_answers(lines_with({to_json(sent)}), nonce);
  REQUIRE(read);
  REQUIRE(read->size() == 1);
  const auto& got = read->front();
  CHECK(got.unit == sent.unit);
  CHECK(got.status == sent.status);
  CHECK(got.file == sent.file);
  REQUIRE(got.entries.size() == 2);
  CHECK(got.entries[0].expression == "gemm<1>");
  CHECK(got.entries[0].symbol == "_Z4gemm");
  CHECK(got.log == "log");
  CHECK(got.toolchain == "clang-19.1.7");
  REQUIRE(got.findings.size() == 1);
  CHECK(got.findings[0].rule == "rule");
  CHECK(got.findings[0].fatal);
}

TEST_CASE("what an oracle answers survives the way to the parent") {
  prepare_answer sent{"w1", verdict_status::invalid_reference, "because", {}};
  sent.numbers = {{{"k", int64_t{-3}}, {"flag", true}}, {{"eps", 1e-5}, {"top", HUGE_VAL}}};
  auto read = read_prepare_answers(lines_with({to_json(sent), graph_to_json("g.json", "")}), nonce);
  REQUIRE(read);
  REQUIRE(read->workloads.size() == 1);
  CHECK(read->workloads[0].uuid == "w1");
  CHECK(read->workloads[0].status == verdict_status::invalid_reference);
  CHECK(read->workloads[0].reason == "because");
  CHECK(read->workloads[0].numbers == sent.numbers);
  CHECK(read->graph_file == "g.json");
}

TEST_CASE("numbers of an entry point are bounded numbers") {
  for (const char* numbers :
    {R"([[1]])", R"([{"k":"many"}])", R"([{"k":[1]}])", R"([{},{},{}])", R"({"k":1})"}) {
    CAPTURE(numbers);
    auto answer = to_json(prepare_answer{"w1", verdict_status::passed, "", {}});
    answer["numbers"] = ordered_json::parse(numbers);
    CHECK_FALSE(read_prepare_answers(lines_with({answer}), nonce));
  }
}

TEST_CASE("what a runner answers survives the way to the parent") {
  workload_measurement sent{"w1", verdict_status::timeout, UINT64_MAX, {1, 2, 3},
    {{"dram", 1.5}, {"l2", 0.0}}, "dram", true, "PTX line 7", {}, {}, {}};
  auto read = read_run_answers(
    lines_with({to_json(sent), to_json(finding{"changes_global", "w1", "byte 3", true})}), nonce);
  REQUIRE(read);
  REQUIRE(read->workloads.size() == 1);
  const auto& got = read->workloads[0];
  CHECK(got.uuid == "w1");
  CHECK(got.status == verdict_status::timeout);
  CHECK(got.time_ns == UINT64_MAX);
  CHECK(got.samples_ns == std::vector<uint64_t>{1, 2, 3});
  REQUIRE(got.terms.size() == 2);
  CHECK(got.terms[0].name == "dram");
  CHECK(got.terms[0].ns == f64(1.5));
  CHECK(got.bound == "dram");
  CHECK(got.shrunken);
  CHECK(got.detail == "PTX line 7");
  REQUIRE(read->findings.size() == 1);
  CHECK(read->findings[0].rule == "changes_global");
  CHECK(read->findings[0].workload == "w1");
}

TEST_CASE("what a judge answers survives the way to the parent, infinite errors too") {
  output_evaluation output{"y", true, true, true, 4096, 17, 0.25,
    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), true,
    std::vector<uint32_t>(64, UINT32_MAX), {7, 0, uint64_t{1} << 40}, 0.125};
  workload_evaluation sent{
    "w1", verdict_status::incorrect_numerical, true, {output}, 11, "set 3, timed 17", "why"};
  auto read = read_judge_answers(lines_with({to_json(sent)}), nonce);
  REQUIRE(read);
  REQUIRE(read->workloads.size() == 1);
  const auto& got = read->workloads[0];
  CHECK(got.uuid == "w1");
  CHECK(got.status == verdict_status::incorrect_numerical);
  CHECK(got.shrunken);
  CHECK(got.detail == "why");
  REQUIRE(got.outputs.size() == 1);
  const auto& seen = got.outputs[0];
  CHECK(seen.output == "y");
  CHECK(seen.passed);
  CHECK(seen.has_nan);
  CHECK(seen.has_inf);
  CHECK(seen.elements == 4096);
  CHECK(seen.mismatches == 17);
  CHECK(static_cast<double>(seen.matched_ratio) == 0.25);
  CHECK(std::isinf(static_cast<double>(seen.max_absolute_error)));
  CHECK(std::isnan(static_cast<double>(seen.max_relative_error)));
  CHECK(seen.all_zero);
  CHECK(seen.miss_tiles == output.miss_tiles);
  CHECK(seen.ulp_histogram == output.ulp_histogram);
  CHECK(seen.relative_rms_error == f64(0.125));
  CHECK(got.calls == 11);
  CHECK(got.call == "set 3, timed 17");
}

TEST_CASE("how a real device was measured survives the way to the parent") {
  workload_measurement sent;
  sent.uuid = "w1";
  sent.status = verdict_status::passed;
  sent.time_ns = 5;
  auto& how = sent.timing;
  how.method = "cupti";
  how.flush = "clean";
  how.warm_up_calls = 9;
  how.span_ns = {8, 9};
  how.device_ns = {6, 7};
  how.activities = {{"kernel", "f", {1, 2, 3}, {32, 1, 1}, 0}, {"memset", "", {}, {}, 64}};
  how.taken_again = 1;
  how.canary_khz_before = 1'980'000;
  how.canary_khz_after = 1'979'000;
  how.weather = {3, 1900, 1980, 3000, 3201, 650'000, 61, uint64_t{1} << 40, 1};
  how.digested = 50;
  how.digests_equal = 49;
  how.written_out = 2;
  sent.written = {{0, "check"}, {1, "timed 17"}};
  sent.blocks = {{true, 100, 2, 25}, {false, 90, 1, 25}};
  auto read = read_run_answers(lines_with({to_json(sent)}), nonce);
  REQUIRE_MESSAGE(read, read.error().what);
  const auto& got = read->workloads.at(0);
  CHECK(got.timing.method == "cupti");
  CHECK(got.timing.flush == "clean");
  CHECK(got.timing.warm_up_calls == 9);
  CHECK(got.timing.span_ns == how.span_ns);
  CHECK(got.timing.device_ns == how.device_ns);
  CHECK(got.timing.activities == how.activities);
  CHECK(got.timing.taken_again == 1);
  CHECK(got.timing.canary_khz_before == 1'980'000);
  CHECK(got.timing.canary_khz_after == 1'979'000);
  CHECK(got.timing.weather.readings == 3);
  CHECK(got.timing.weather.memory_mhz_max == 3201);
  CHECK(got.timing.weather.throttle_bits == uint64_t{1} << 40);
  CHECK(got.timing.weather.foreign_processes == 1);
  CHECK(got.timing.digested == 50);
  CHECK(got.timing.digests_equal == 49);
  CHECK(got.timing.written_out == 2);
  REQUIRE(got.written.size() == 2);
  CHECK(got.written[1].check == 1);
  CHECK(got.written[1].call == "timed 17");
  REQUIRE(got.blocks.size() == 2);
  CHECK(got.blocks[0].rival);
  CHECK(got.blocks[1].median_ns == 90);

  how.digests_equal = 51; // More than were looked at.
  CHECK_FALSE(read_run_answers(lines_with({to_json(sent)}), nonce));
}

TEST_CASE("answers without done are a failed child, and lines after it an error") {
  auto lines = lines_with({});
  lines.pop_back();
  auto read = read_run_answers(lines, nonce);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::child_failed);
  CHECK_FALSE(read_run_answers({}, nonce));

  lines = lines_with({});
  lines.push_back(line("phase", {{"name", "again"}}));
  CHECK_FALSE(read_run_answers(lines, nonce));
}

TEST_CASE("a sample of another shape is refused, and the message names the field") {
  auto body = to_json(workload_evaluation{"w", verdict_status::passed, false, {}, 0, {}, ""});
  REQUIRE(read_judge_answers(lines_with({body}), nonce));
  SUBCASE("unknown key") {
    body["extra"] = 1;
  }
  SUBCASE("missing key") {
    body.erase("status");
  }
  SUBCASE("wrong type") {
    body["shrunken"] = "no";
  }
  SUBCASE("unknown status") {
    body["status"] = "passed";
  }
  SUBCASE("wrong element") {
    body["outputs"] = ordered_json::array({1});
  }
  auto read = read_judge_answers(lines_with({body}), nonce);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::invalid_input);
  CHECK(read.error().what.find("line 3") != std::string::npos);
}

TEST_CASE("every status has one name") {
  for (int i = 0; i <= static_cast<int>(verdict_status::infrastructure); ++i) {
    const auto status = static_cast<verdict_status>(i);
    CHECK(status_from_text(to_string(status)).value() == status);
  }
  CHECK_FALSE(status_from_text(""));
}
