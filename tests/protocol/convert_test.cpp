#include "protocol/convert.hpp"

#include "protocol/definition.hpp"
#include "protocol/solution.hpp"
#include "protocol/workload.hpp"

#include "protocol/json_document.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string joined(const std::vector<std::string>& notes) {
  std::string out;
  for (const auto& each : notes)
    out += each + "\n";
  return out;
}

ordered_json old_definition() {
  return ordered_json::parse(R"({"name":"d","op_type":"gemm","tags":["a"],"hf_id":"",
    "axes":{"N":{"type":"var"}},"constraints":["N % 2 == 0","N > 0"],
    "inputs":{"x":{"shape":["N"],"dtype":"float16"}},
    "outputs":{"y":{"shape":["N"],"dtype":"float16"}},"reference":"def run(x):\n  return x"})");
}

ordered_json old_solution(const char* language) {
  auto out = ordered_json::parse(R"({"name":"s","definition":"d","author":"a",
    "spec":{"language":"","target_hardware":["NVIDIA_H100","B200"],"entry_point":"","dependencies":[],
      "destination_passing_style":false},
    "sources":[{"path":"k.py","content":"x"},{"path":"k.cu","content":"y"}]})");
  out["spec"]["language"] = language;
  const bool python = std::string{language} == "python" || std::string{language} == "triton";
  out["spec"]["entry_point"] = python ? "k.py::run" : "k.cu::run";
  return out;
}

std::string wrapped(const char* uuid, int n, const char* definition = "d", bool result = false) {
  ordered_json out{{"definition", definition}, {"solution", nullptr},
    {"workload", {{"uuid", uuid}, {"axes", {{"N", n}}}, {"inputs", {{"x", {{"type", "random"}}}}}}},
    {"evaluation", nullptr}};
  if (result)
    out["solution"] = "s";
  return out.dump() + "\n";
}

} // namespace

TEST_CASE("a definition keeps its meaning, and each constraint that is lost is named") {
  const auto done = convert_definition(old_definition().dump(), "d.json");
  REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
  std::vector<std::string> warnings;
  const auto read = parse_definition(done->text, "d.json", &warnings);
  REQUIRE(read);
  CHECK(warnings.empty());
  CHECK(*read == parse_definition(old_definition().dump(), "d.json").value());
  const auto notes = joined(done->notes);
  CHECK(contains(notes, "constraints.0: `N % 2 == 0` is dropped"));
  CHECK(contains(notes, "constraints.1: `N > 0` is dropped"));
  CHECK(contains(notes, "`tags`"));
  CHECK(contains(notes, "hf_id"));
}

TEST_CASE("a definition that means something else here is not converted") {
  auto document = old_definition();
  document["inputs"]["x"]["optional"] = true;
  CHECK(contains(
    convert_definition(document.dump(2), "d.json").error().what, "d.json:23: inputs.x.optional: "));
  document["inputs"]["x"]["optional"] = false;
  CHECK(convert_definition(document.dump(), "d.json"));
  document["inputs"]["x"]["dtype"] = "uint8";
  CHECK(contains(convert_definition(document.dump(), "d.json").error().what, "inputs.x.dtype: "));
  CHECK_FALSE(convert_definition("[]", "d.json"));
  CHECK_FALSE(convert_definition("{", "d.json"));
}

TEST_CASE("wrapped and plain workload lines come out plain, each once") {
  const std::string plain = R"({"uuid":"c","axes":{"N":3},"inputs":{},"tolerance":{"max_atol":1}})";
  const auto done = convert_workloads(
    wrapped("a", 1) + "\n" + wrapped("b", 2, "d", true) + wrapped("a", 1, "d", true) + plain,
    "w.jsonl");
  REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
  const auto read = parse_workloads(done->text, "w.jsonl");
  REQUIRE(read);
  REQUIRE(read->size() == 3);
  CHECK(read->at(0).uuid == "a");
  CHECK(read->at(1).axes == axis_values{{"N", 2}});
  CHECK(read->at(2).allowed.atol == 1);
  const auto notes = joined(done->notes);
  CHECK(contains(notes, "3 of the lines: the trace around the workload is dropped"));
  CHECK(contains(notes, "2 of the lines: solution and evaluation are dropped"));
  CHECK(contains(notes, "1 of the lines: the workload stands on an earlier line too"));
  CHECK(contains(notes, "3 of the lines: no tolerance"));
}

TEST_CASE("workload lines that contradict each other are not converted") {
  CHECK(contains(convert_workloads(wrapped("a", 1) + wrapped("a", 2), "w.jsonl").error().what,
    "w.jsonl:2: workload.uuid: `a` stands on an earlier line with other content"));
  CHECK(contains(convert_workloads(wrapped("a", 1) + wrapped("b", 1, "e"), "w.jsonl").error().what,
    "w.jsonl:2: definition: `e`, but an earlier line is of `d`"));
  CHECK(contains(
    convert_workloads(wrapped("a", -1), "w.jsonl").error().what, "w.jsonl:1: workload.axes.N: "));
  CHECK(
    contains(convert_workloads("{\"workload\":5}", "w.jsonl").error().what, "workload: must be"));
  CHECK_FALSE(convert_workloads("", "w.jsonl"));
  CHECK_FALSE(convert_workloads("[]", "w.jsonl"));
}

TEST_CASE("a solution gets the languages of the format") {
  for (const auto& [old, now] : {std::pair{"python", "pytorch"}, std::pair{"triton", "triton"},
         std::pair{"cuda", "cuda_cpp"}, std::pair{"cpp", "cuda_cpp"}}) {
    CAPTURE(old);
    auto document = old_solution(old);
    document["spec"]["binding"] = std::string{now} == "cuda_cpp" ? "torch" : "tvm-ffi";
    const auto done = convert_solution(document.dump(), "s.json");
    REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
    const auto read = parse_solution(done->text, "s.json");
    REQUIRE(read);
    CHECK(read->languages == std::vector<std::string>{now});
    CHECK(read->target_hardware == std::vector<std::string>{"B200"});
    CHECK(read->binding == (std::string{now} == "cuda_cpp" ? "torch" : ""));
    CHECK_FALSE(read->destination_passing_style);
    CHECK(contains(joined(done->notes), "`NVIDIA_H100` is dropped"));
  }
}

TEST_CASE("what the format cannot say about a solution is named and never guessed") {
  const auto refused = [](const ordered_json& document) {
    const auto done = convert_solution(document.dump(2), "s.json");
    REQUIRE_FALSE(done);
    return done.error().what;
  };
  CHECK(contains(refused(old_solution("cuda")), "s.json:5: spec.binding: absent, which means"));
  auto document = old_solution("cpp");
  document["spec"]["binding"] = "tvm-ffi";
  CHECK(contains(refused(document), "spec.binding: the format has no `tvm-ffi`"));
  CHECK(contains(refused(old_solution("tilelang")), "s.json:6: spec.language: `tilelang` has no"));
  document = old_solution("python");
  document["spec"]["target_hardware"] = {"H100"};
  CHECK(contains(refused(document), "spec.target_hardware: none of them"));
  document = old_solution("python");
  document["sources"][0].erase("content");
  CHECK(contains(refused(document), "sources.0.content: "));
  document = old_solution("python");
  document["spec"].erase("language");
  CHECK(contains(refused(document), "spec.language: a string is required"));
  CHECK_FALSE(convert_solution("[]", "s.json"));
}

TEST_CASE("a style that the older solution does not state is filled in with a note") {
  auto document = old_solution("python");
  document["spec"].erase("destination_passing_style");
  document["spec"]["target_hardware"] = {"local"};
  const auto done = convert_solution(document.dump(), "s.json");
  REQUIRE(done);
  CHECK(contains(joined(done->notes), "spec.destination_passing_style: absent"));
  const auto read = parse_solution(done->text, "s.json");
  CHECK(read->destination_passing_style);
  CHECK(read->target_hardware == std::vector<std::string>{"LOCAL"});
}

TEST_CASE("converting what is converted changes nothing") {
  const auto definition = convert_definition(old_definition().dump(), "d").value().text;
  CHECK(convert_definition(definition, "d").value().text == definition);
  const auto lines = convert_workloads(wrapped("a", 1) + wrapped("b", 2), "w").value().text;
  CHECK(convert_workloads(lines, "w").value().text == lines);
  CHECK(convert_workloads(lines, "w").value().notes.empty());
  const auto solution = convert_solution(old_solution("python").dump(), "s").value().text;
  CHECK(convert_solution(solution, "s").value().text == solution);
  CHECK(convert_solution(solution, "s").value().notes.empty());
}

TEST_CASE("a document is recognised by its keys") {
  CHECK(recognise_document(old_definition().dump()) == document_kind::definition);
  CHECK(recognise_document(old_solution("python").dump(2)) == document_kind::solution);
  CHECK(recognise_document(wrapped("a", 1)) == document_kind::workloads);
  CHECK(
    recognise_document("\n\r\n" + wrapped("a", 1) + wrapped("b", 1)) == document_kind::workloads);
  CHECK(recognise_document(R"({"uuid":"a"})") == document_kind::workloads);
  for (const char* text : {"", "[]", "{}", "x", "{}\n{}", "5"})
    CHECK_FALSE(recognise_document(text));
  for (const auto kind :
    {document_kind::definition, document_kind::workloads, document_kind::solution}) {
    CHECK_FALSE(name(kind).empty());
    CHECK_FALSE(convert_document(kind, "", "f"));
  }
}
