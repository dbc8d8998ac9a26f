// The document of what compute-sanitizer said, and that of the runner that it looked at.

#include "protocol/sanitizer_record.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace gristmill;

namespace {

sanitizer_record example() {
  sanitizer_record out;
  out.attempt = "softmax/cuda/3";
  out.candidate = std::string(64, 'a');
  out.device = "NVIDIA H200";
  out.program = "compute-sanitizer 2025.3.1";
  out.jail = "limits";
  out.same_code = true;
  out.workloads = {"one", "two"};
  out.at = "2026-12-02T00:10:00Z";
  sanitizer_look found;
  found.tool = sanitizer_tool::racecheck;
  found.end = look_end::found;
  found.findings = {{"Race", "kernel", "kernel+0x10", "and Read", 508}};
  found.left_out = 7;
  found.notes = {"a warning"};
  sanitizer_look blind;
  blind.tool = sanitizer_tool::initcheck;
  blind.why = "the report has no summary";
  out.looks = {found, blind};
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

} // namespace

TEST_CASE("a record is read as it was written") {
  const auto text = to_json(example());
  const auto read = sanitizer_record_from_json(text);
  REQUIRE(read);
  CHECK(to_json(*read) == text);
  REQUIRE(read->looks.size() == 2);
  CHECK(read->looks[0].findings[0].count == 508);
  CHECK(read->looks[1].end == look_end::did_not_look);
}

TEST_CASE("a record with a field more, less or otherwise is refused by its name") {
  const auto text = to_json(example());
  const std::pair<std::string, std::string> changes[] = {{"\"left_out\":7", "\"left_out\":-7"},
    {"\"racecheck\"", "\"racechek\""}, {"\"did_not_look\"", "\"passed\""},
    {"gristmill.sanitizer/1", "gristmill.sanitizer/2"}, {"\"same_code\":true,", ""},
    {"\"at\":", "\"more\":1,\"at\":"}, {"[\"one\",\"two\"]", "[1]"}};
  for (const auto& [what, by] : changes) {
    CAPTURE(what);
    const auto read = sanitizer_record_from_json(replaced(text, what, by));
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::invalid_input);
  }
  CHECK_FALSE(sanitizer_record_from_json("{"));
  CHECK_FALSE(sanitizer_record_from_json("[]"));
}

TEST_CASE("what a runner writes of its calls is read as it was written, and nothing else is") {
  sanitized_calls calls;
  calls.calls = {{"one", "", {{"shared memory race", "kernel", "PTX line 4", "text", 2}}, 1, {}},
    {"two", "the kernel faulted", {}, 0, {"3 accesses were not checked"}}};
  const auto text = to_json(calls);
  const auto read = sanitized_calls_from_json(text);
  REQUIRE(read);
  CHECK(to_json(*read) == text);
  CHECK_FALSE(sanitized_calls_from_json(replaced(text, "\"failed\"", "\"passed\"")));
  CHECK_FALSE(sanitized_calls_from_json(to_json(example())));
}
