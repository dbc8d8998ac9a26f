#include "protocol/feedback.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <nlohmann/json.hpp>

using namespace gristmill;

namespace {

constexpr const char* source = "line one\nline two\nfloat x = y;\nline four\nline five\n";

feedback refused(const std::string& log, verdict_status status = verdict_status::compile_error) {
  compiled_candidate compiled;
  compiled.status = status;
  compiled.log = log;
  verdict judged;
  judged.status = status;
  judged.reason = log;
  return feedback_of_refusal(compiled, judged, source);
}

workload_verdict of(const std::string& uuid, verdict_status status, uint64_t time_ns = 0,
  uint64_t floor_ns = 0, std::string detail = {}) {
  workload_verdict w;
  w.uuid = uuid;
  w.status = status;
  w.time_ns = time_ns;
  w.floor_ns = floor_ns;
  w.detail = std::move(detail);
  return w;
}

verdict judged_as(verdict_status status, std::string detail = {}) {
  verdict v;
  v.status = status;
  v.reason = "why";
  v.origin = time_origin::modelled;
  v.workloads = {of("w", status, 0, 0, std::move(detail))};
  return v;
}

evaluation missing(std::vector<uint32_t> tiles) {
  output_evaluation o;
  o.output = "y";
  o.elements = 4096;
  o.mismatches = 64;
  o.max_absolute_error = 0.5;
  o.max_relative_error = std::numeric_limits<double>::infinity();
  o.miss_tiles = std::move(tiles);
  workload_evaluation w;
  w.uuid = "w";
  w.status = verdict_status::incorrect_numerical;
  w.outputs = {o};
  return {{w}};
}

std::vector<int64_t> square(const std::string&, const std::string&, bool) {
  return {4, 16, 64};
}

} // namespace

TEST_CASE("the first three different errors of a compiler are told with their lines") {
  auto said = refused("candidate.cu:3:11: error: use of undeclared identifier 'y'\n"
                      "candidate.cu:3:11: note: in instantiation of\n"
                      "candidate.cu:3:13: error: use of undeclared identifier 'y'\n"
                      "candidate.cu(2): error: expected a \";\"\n"
                      "candidate.cu:1:1: fatal error: no such file\n"
                      "candidate.cu:5:1: error: a fourth\n");
  CHECK(said.what == feedback_class::compile);
  REQUIRE(said.diagnostics.size() == 3);
  CHECK(said.diagnostics[0].line == 3);
  CHECK(said.diagnostics[0].message == "use of undeclared identifier 'y'");
  CHECK(
    said.diagnostics[0].source == "    2 | line two\n>   3 | float x = y;\n    4 | line four\n");
  CHECK(said.diagnostics[1].line == 2);
  CHECK(said.diagnostics[2].message == "no such file");
  CHECK_MESSAGE(said.left_out == 1, "the repeated one does not count");
}

TEST_CASE("what no compiler says, such as a plan that does not resolve, is told as it is") {
  auto said = refused("launch plan: steps[0].grid: 'foo' is unknown\nmore");
  REQUIRE(said.diagnostics.size() == 2);
  CHECK(said.diagnostics[0].line == 0);
  CHECK(said.diagnostics[0].message == "launch plan: steps[0].grid: 'foo' is unknown");
  CHECK(to_text(said).find("'foo' is unknown") != std::string::npos);
}

TEST_CASE("no path of the host is told") {
  auto said =
    refused("/home/me/run/jobs/7/candidate.cu:3:1: error: in /usr/include/math.h and a/b");
  REQUIRE(said.diagnostics.size() == 1);
  CHECK(said.diagnostics[0].message == "in math.h and a/b");
  CHECK(to_json(said).find("/home") == std::string::npos);
}

TEST_CASE("of a wrong result shape, errors, place and kind are told") {
  std::vector<uint32_t> tiles(64, 0);
  tiles[3 * 8 + 7] = 64;
  auto v = judged_as(verdict_status::incorrect_numerical);
  auto said = feedback_of_verdict(v, {}, missing(tiles), square);
  CHECK(said.what == feedback_class::wrong);
  REQUIRE(said.misses.size() == 1);
  CHECK(
    said.misses[0].where.find("the first lie in rows 24..31, columns 56..63") != std::string::npos);
  auto text = to_text(said);
  CHECK(text.find("[4, 16, 64]") != std::string::npos);
  CHECK(text.find("64 of 4096 elements") != std::string::npos);
  CHECK_MESSAGE(parse_feedback(to_json(said)), "an error that is not finite is no JSON number");
  SUBCASE("NaN") {
    auto compared = missing(tiles);
    compared.workloads[0].outputs[0].has_nan = true;
    CHECK(to_text(feedback_of_verdict(v, {}, compared, square)).find("NaN") != std::string::npos);
  }
  SUBCASE("a histogram of another size says nothing and breaks nothing") {
    CHECK(feedback_of_verdict(v, {}, missing({1, 2}), square).misses[0].where.empty());
  }
  SUBCASE("an output that was never written has no misses, but a reason") {
    v.workloads[0].detail = "output `y` was not written";
    CHECK(
      to_text(feedback_of_verdict(v, {}, {}, square)).find("was not written") != std::string::npos);
  }
}

TEST_CASE("of a correct one its times are told, the farthest from its floor first") {
  verdict v;
  v.status = verdict_status::passed;
  v.origin = time_origin::modelled;
  v.workloads = {
    of("near", verdict_status::passed, 1000, 900), of("far", verdict_status::passed, 4000, 1000)};
  measurement measured;
  workload_measurement m;
  m.uuid = "far";
  m.time_ns = 4000;
  m.bound = "shared";
  m.terms = {{"dram", 500.0}, {"shared", 3000.0}};
  measured.workloads = {m};
  auto said = feedback_of_verdict(v, measured, {}, nullptr);
  CHECK(said.what == feedback_class::slow);
  REQUIRE(said.times.size() == 2);
  CHECK(said.times[0].workload == "far");
  CHECK(said.times[0].terms.front().name == "shared");
  auto text = to_text(said);
  CHECK(text.find("25 % of the speed of light") != std::string::npos);
  CHECK(text.find("bank conflicts") != std::string::npos);
  CHECK(text.find("MODELLED") != std::string::npos);
}

TEST_CASE("faults and hangs tell what the device said, cheating tells the rule") {
  auto fault =
    feedback_of_verdict(judged_as(verdict_status::runtime_error, "PTX line 12: bad"), {}, {}, {});
  CHECK(fault.what == feedback_class::fault);
  CHECK(to_text(fault).find("PTX line 12") != std::string::npos);
  CHECK(feedback_of_verdict(judged_as(verdict_status::timeout), {}, {}, {}).what
    == feedback_class::hang);
  auto v = judged_as(verdict_status::reward_hack);
  v.findings = {{"writes_input", "w", "x was changed", true}, {"clock", "w", "harmless", false}};
  auto cheat = feedback_of_verdict(v, {}, {}, {});
  CHECK(cheat.what == feedback_class::cheat);
  REQUIRE_MESSAGE(cheat.findings.size() == 1, "what decided it, and nothing else");
  CHECK(to_text(cheat).find("writes_input") != std::string::npos);
}

TEST_CASE("feedback survives being written, whatever is in it") {
  feedback all;
  all.what = feedback_class::wrong;
  all.origin = time_origin::measured;
  all.summary = "s";
  all.diagnostics = {{7, "m", "src"}};
  all.misses = {{"w", "y", {2, 3}, true, 6, 5, 0.25, 0.5, true, true, true, "where"}};
  all.times = {{"w", 10, 5, 20, "dram", {{"dram", 4.0}}}};
  all.workload = "w";
  all.detail = "d";
  all.findings = {{"r", "w", "d", true}};
  all.left_out = 3;
  auto again = parse_feedback(to_json(all));
  REQUIRE(again);
  CHECK(to_json(*again) == to_json(all));
  CHECK(again->misses[0].all_zero);
  CHECK(again->times[0].baseline_ns == 20);
}

TEST_CASE("a document is never larger than allowed, and says what it left out") {
  feedback big;
  for (int i = 0; i < 200; ++i)
    big.times.push_back({std::string(100, 'w'), 1, 1, 1, "dram", {}});
  big.summary = "s";
  auto text = to_json(big);
  CHECK(text.size() <= feedback_bytes_max);
  CHECK(parse_feedback(text)->left_out > 100);
  big.times.clear();
  big.detail = std::string(20'000, 'x');
  CHECK(to_json(big).size() <= feedback_bytes_max);
  big.detail = std::string(300, '\xff');
  CHECK_MESSAGE(parse_feedback(to_json(big)), "bytes that are no text");
}

TEST_CASE("a text for a prompt keeps whole blocks within its bytes") {
  feedback slow;
  for (int i = 0; i < 40; ++i)
    slow.times.push_back({"w" + std::to_string(i), 1000, 500, 0, "dram", {}});
  auto text = to_text(slow, 400);
  CHECK(text.size() <= 400);
  CHECK(text.back() == '\n');
  CHECK(text.find("left out") != std::string::npos);
}

TEST_CASE("what is no feedback is refused with a reason") {
  for (const char* wrong : {"", "[]", "{}", R"({"schema":"gristmill.feedback/2"})",
         R"({"schema":"gristmill.feedback/1","class":"odd","summary":""})",
         R"({"schema":"gristmill.feedback/1","class":"slow","summary":"","times":[{}]})"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_feedback(wrong));
  }
}
