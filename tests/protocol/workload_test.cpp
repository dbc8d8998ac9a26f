#include "protocol/workload.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

definition sample() {
  definition def;
  def.axes = {{"N", axis_kind::variable, 0, "", ""}, {"K", axis_kind::constant, 8, "", ""},
    {"E", axis_kind::expression, 0, "N*K", ""}, {"F", axis_kind::expression, 0, "E-100", ""}};
  return def;
}

} // namespace

TEST_CASE("blank lines, CRLF and a missing last newline do no harm") {
  const std::string line = R"({"uuid":"a","axes":{"N":1},"inputs":{}})";
  auto many = parse_workloads("\n" + line + "\r\n   \n\r\n" + line, "w.jsonl");
  REQUIRE(many);
  CHECK(many->size() == 2);
  CHECK(parse_workloads("", "w.jsonl")->empty());
}

TEST_CASE("each wrong line is named, the first twenty of them") {
  std::string text;
  for (int i = 0; i < 25; ++i)
    text += R"({"axes":{"N":-1},"inputs":{}})"
            "\n";
  const auto what = parse_workloads(text, "w.jsonl").error().what;
  CHECK(contains(what, "w.jsonl:1: uuid: "));
  CHECK(contains(what, "w.jsonl:1: axes.N: "));
  CHECK(contains(what, "w.jsonl:20: "));
  CHECK_FALSE(contains(what, "w.jsonl:21: "));
  CHECK(contains(what, "5 more lines"));
}

TEST_CASE("a syntax error names the line of the file") {
  const auto what = parse_workloads("\n{\"uuid\" 1}\n", "w.jsonl").error().what;
  CHECK(contains(what, "w.jsonl:2:1:9: not valid JSON"));
}

TEST_CASE("a repeated warning is given once, with its count") {
  const std::string line =
    R"({"uuid":"a","axes":{},"inputs":{},"checks":[],"tolerance":{"required_match_ratio":0.98}})"
    "\n";
  std::vector<std::string> warnings;
  auto many = parse_workloads(line + line + line, "w.jsonl", &warnings);
  REQUIRE(many);
  CHECK(many->at(0).allowed == tolerance{});
  REQUIRE(warnings.size() == 3);
  std::string all;
  for (const auto& each : warnings)
    all += each + "\n";
  CHECK(contains(all, "w.jsonl:1: ignored key `checks`: another dialect"));
  CHECK(contains(all, "(and on 2 more lines)"));
  CHECK(contains(all, "did you mean `required_matched_ratio`?"));
  CHECK(contains(all, "w.jsonl:2: the uuid `a` stands on an earlier line too"));
}

TEST_CASE("an input without a type is what its fields make it") {
  auto work = parse_workload(
    R"({"uuid":"u","axes":{},"inputs":{"a":{},"b":{"value":1.0},"c":{"path":"p","tensor_key":"k"},
       "d":{"path":"p"},"e":{"value":"2.0"},"f":{"value":"yes"}}})",
    "w.jsonl", 1);
  REQUIRE(work);
  CHECK(work->inputs[0].kind == input_kind::random);
  CHECK(work->inputs[1].value == python_number{1.0});
  CHECK(work->inputs[2].kind == input_kind::safetensors);
  CHECK(work->inputs[3].kind == input_kind::random);
  CHECK(work->inputs[4].value == python_number{int64_t{2}});
  CHECK(work->inputs[5].value == python_number{true});
  CHECK(work->find_input("c") == &work->inputs[2]);
  CHECK(work->find_input("z") == nullptr);
}

TEST_CASE("a tolerance that is not a number is refused, since nothing would exceed it") {
  const auto read = [](const char* value) {
    return parse_workload(
      std::string{R"({"uuid":"u","axes":{},"inputs":{},"tolerance":{"max_atol":)"} + value + "}}",
      "w.jsonl", 1);
  };
  CHECK(read("-1"));
  CHECK(read("\"1e-3\"")->allowed.atol == 1e-3);
  CHECK_FALSE(read("\"nan\""));
  CHECK_FALSE(read("null"));
  CHECK_FALSE(read("[]"));
}

TEST_CASE("an integer beyond 64 bits is refused and not rounded") {
  CHECK_FALSE(parse_workload(
    R"({"uuid":"u","axes":{},"inputs":{"a":{"type":"scalar","value":18446744073709551615}}})",
    "w.jsonl", 1));
}

TEST_CASE("axes resolve in the order constants, own, expressions") {
  auto axes = resolve_axes(sample(), {{"N", 20}, {"Z", 3}, {"K", 2}});
  REQUIRE(axes);
  CHECK(*axes == axis_values{{"K", 2}, {"N", 20}, {"Z", 3}, {"E", 40}, {"F", -60}});
  const auto missing = resolve_axes(sample(), {});
  REQUIRE_FALSE(missing);
  CHECK(contains(missing.error().what, "axes.E.expression"));
}

TEST_CASE("a shape takes digits before axes and refuses what is missing or negative") {
  const axis_values axes{{"N", 4}, {"7", 9}, {"M", -1}};
  const auto shape = [&](std::vector<std::string> entries) {
    return resolve_shape(tensor_spec{"x", dtype::float32, false, std::move(entries), ""}, axes);
  };
  CHECK(*shape({"N", "7", "007", "0"}) == std::vector<int64_t>{4, 7, 7, 0});
  CHECK(shape({})->empty());
  CHECK(contains(shape({"Q"}).error().what, "axis `Q` no value"));
  CHECK(contains(shape({"M"}).error().what, "negative"));
  CHECK(contains(shape({"99999999999999999999"}).error().what, "too big"));
}

TEST_CASE("a scalar beyond 64 bits is refused also without its type, and does not become random") {
  for (const char* value : {"9223372036854775808", "18446744073709551616", "-9223372036854775809",
         "\"9223372036854775808\"", "\"1_0000000000000000000\""}) {
    CAPTURE(value);
    const auto line =
      std::string{R"({"uuid":"u","axes":{},"inputs":{"a":{"value":)"} + value + "}}}";
    const auto work = parse_workload(line, "w", 1);
    REQUIRE_FALSE(work);
    CHECK(work.error().what.find("inputs.a.value") != std::string::npos);
  }
}

TEST_CASE("a big float is a float, whatever integers stand in the strings of its line") {
  for (const char* value : {"-1e30", "18446744073709551616.0", "1.8446744073709552e19"}) {
    CAPTURE(value);
    const auto line =
      std::string{
        R"({"uuid":"18446744073709551616 \" 18446744073709551616","axes":{},"inputs":{"a":)"}
      + R"({"type":"scalar","value":)" + value + "}}}";
    const auto work = parse_workload(line, "w", 1);
    REQUIRE_MESSAGE(work, (work ? "" : work.error().what));
    CHECK(std::get<double>(work->inputs[0].value) == std::stod(value));
  }
}

TEST_CASE("a number beyond a double is infinite, as Python reads it") {
  const auto work = parse_workload(
    R"({"uuid":"1e400","axes":{},"inputs":{"a":{"value":-1e400}},"tolerance":{"max_atol":1e400}})",
    "w", 1);
  REQUIRE_MESSAGE(work, (work ? "" : work.error().what));
  CHECK(work->uuid == "1e400");
  CHECK(work->allowed.atol == std::numeric_limits<double>::infinity());
  CHECK(work->inputs[0].value == python_number{-std::numeric_limits<double>::infinity()});
  CHECK_FALSE(parse_workload(R"({"uuid":"u","axes":{"N":1e400},"inputs":{}})", "w", 1));
}
