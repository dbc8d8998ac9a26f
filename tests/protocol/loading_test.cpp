#include "protocol/definition.hpp"
#include "protocol/emit.hpp"
#include "protocol/workload.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

// What real files look like at their edges: long lines, many tensors, none at all.

using namespace gristmill;

namespace {

std::string named(const char* stem, size_t i) {
  return fmt::format("{}{}", stem, i);
}

/// A definition with that many inputs and outputs, indented.
ordered_json wide(size_t inputs, size_t outputs) {
  ordered_json out{{"name", "wide"}, {"axes", {{"N", {{"type", "var"}}}}}};
  out["inputs"] = ordered_json::object();
  out["outputs"] = ordered_json::object();
  std::string parameters;
  for (size_t i = 0; i < inputs; ++i) {
    out["inputs"][named("in", i)] = {{"shape", {"N", "3"}}, {"dtype", "bfloat16"}};
    parameters += (i == 0 ? "" : ", ") + named("in", i);
  }
  for (size_t i = 0; i < outputs; ++i)
    out["outputs"][named("out", i)] = {{"shape", {"N"}}, {"dtype", "float32"}};
  out["reference"] = "def run(" + parameters + "):\n  return ()\n";
  return out;
}

} // namespace

TEST_CASE("41 inputs and 14 outputs load in their order") {
  const auto def = parse_definition(wide(41, 14).dump(2), "definition.json");
  REQUIRE_MESSAGE(def, (def ? "" : def.error().what));
  REQUIRE(def->inputs.size() == 41);
  REQUIRE(def->outputs.size() == 14);
  for (size_t i = 0; i < 41; ++i)
    CHECK(def->inputs[i].name == named("in", i));
  CHECK(parse_definition(to_json(*def), "definition.json").value() == *def);
}

TEST_CASE("no inputs and no outputs load") {
  const auto def = parse_definition(wide(0, 0).dump(), "definition.json");
  REQUIRE(def);
  CHECK(def->inputs.empty());
  CHECK(def->outputs.empty());
}

TEST_CASE("a reference of 30 kB in one line of the file loads") {
  auto document = wide(1, 1);
  std::string body = "import torch\n\n\ndef run(in0):\n";
  while (body.size() < 30'000)
    body += "    x = torch.matmul(in0, in0.T)  # the same \"again\" and {again}\n";
  document["reference"] = body + "    return x\n";
  const auto def = parse_definition(document.dump(), "definition.json");
  REQUIRE_MESSAGE(def, (def ? "" : def.error().what));
  CHECK(def->reference.size() > 30'000);
  CHECK(parse_definition(to_json(*def), "definition.json").value() == *def);
  // As one logical line of Python, too.
  document["reference"] = "def run(in0): return (" + std::string(30'000, '(') + ")";
  CHECK_FALSE(parse_definition(document.dump(), "definition.json"));
  std::string sum = "in0";
  while (sum.size() < 30'000)
    sum += " + in0";
  document["reference"] = "def run(in0): return " + sum;
  CHECK(parse_definition(document.dump(), "definition.json"));
}

TEST_CASE("CRLF, a missing last newline and characters of other alphabets do no harm") {
  auto document = wide(1, 1);
  document["description"] = "größer ≤ 中文 🙂";
  auto text = document.dump(2);
  std::string crlf;
  for (char c : text)
    crlf += c == '\n' ? std::string{"\r\n"} : std::string{c};
  CHECK(parse_definition(crlf, "d").value() == parse_definition(text, "d").value());
  CHECK(parse_definition(text + "\n\n", "d").value().description == "größer ≤ 中文 🙂");
}

TEST_CASE("an axis of 0 gives a tensor without elements") {
  const auto def = parse_definition(wide(1, 1).dump(), "definition.json");
  const auto work = parse_workload(R"({"uuid":"u","axes":{"N":0},"inputs":{}})", "w", 1);
  REQUIRE(work);
  const auto axes = resolve_axes(*def, work->axes);
  REQUIRE(axes);
  CHECK(resolve_shape(def->inputs[0], *axes).value() == std::vector<int64_t>{0, 3});
}

TEST_CASE("errors and warnings of an indented definition name their lines") {
  auto document = wide(2, 1);
  document["inputs"]["in1"]["dtype"] = "bf16";
  document["inputs"]["in0"]["layout"] = "row";
  std::vector<std::string> warnings;
  const auto read = parse_definition(document.dump(2), "dir/definition.json", &warnings);
  REQUIRE_FALSE(read);
  CHECK(read.error().what.starts_with("dir/definition.json:22: inputs.in1.dtype: unknown dtype"));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("dir/definition.json:15: ignored key `inputs.in0.layout`"));
}

TEST_CASE("a hostile definition gets a short answer") {
  auto document = wide(1, 1);
  const std::string long_name(100'000, 'n');
  document["inputs"][long_name] = 5;
  document["axes"]["a\nb\x1b[31m"] = 5;
  for (int i = 0; i < 3000; ++i)
    document["outputs"][named("bad", static_cast<size_t>(i))] = 5;
  std::vector<std::string> warnings;
  const auto read = parse_definition(document.dump(), "d", &warnings);
  REQUIRE_FALSE(read);
  CHECK(read.error().what.size() < 20'000);
  CHECK(read.error().what.find('\x1b') == std::string::npos);
  ordered_json many = wide(1, 1);
  for (int i = 0; i < 3000; ++i)
    many[named("unknown", static_cast<size_t>(i))] = 1;
  REQUIRE(parse_definition(many.dump(), "d", &warnings));
  CHECK(warnings.size() <= 100);
}

TEST_CASE("Python's words for numbers are read where a number may stand") {
  const auto work = parse_workload(
    R"({"uuid":"NaN","axes":{},"inputs":{"s":{"type":"scalar","value":-Infinity}}})", "w", 1);
  REQUIRE_MESSAGE(work, (work ? "" : work.error().what));
  CHECK(work->uuid == "NaN");
  CHECK(work->inputs[0].value == python_number{-std::numeric_limits<double>::infinity()});
  const auto written = to_json(*work);
  CHECK(written.find("\"value\":\"-inf\"") != std::string::npos);
  CHECK(parse_workload(written, "w", 1).value() == *work);
  CHECK_FALSE(parse_workload(R"({"uuid":NaN,"axes":{},"inputs":{}})", "w", 1));
  CHECK_FALSE(parse_workload(R"({"uuid":"u","axes":{"N":NaN},"inputs":{}})", "w", 1));
  CHECK_FALSE(
    parse_workload(R"({"uuid":"u","axes":{},"inputs":{},"tolerance":{"max_atol":NaN}})", "w", 1));
}
