#include "protocol/op_graph.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <string>

using namespace gristmill;

namespace {

constexpr auto sample = R"({
  "schema": "gristmill.graph/1",
  "axes": {"M": 5, "N": 7},
  "values": [
    {"id": 0, "dtype": "bfloat16", "shape": [5, 7], "input": "x"},
    {"id": 1, "dtype": "float32", "shape": [], "scalar_input": "eps"},
    {"id": 2, "dtype": "float32", "shape": [2], "constant": [0.5, "-inf"]},
    {"id": 3, "dtype": "float32", "shape": [5, 7]},
    {"id": 9, "dtype": "float32", "shape": [5, 7]}
  ],
  "nodes": [
    {"op": "_to_copy", "inputs": [{"value": 0}], "outputs": [3], "attrs": {"dtype": "float32"}},
    {"op": "odd", "inputs": [{"value": 3}, {"scalar_input": "eps"}, null, true, 3, 1.5, [1, 2],
      [0.5, 2], "text", {"values": [0, 3]}, {"number": "inf"}, {"integer": 7, "varies": true}],
      "outputs": [9]}
  ],
  "outputs": [9]
})";

/// The sample with one piece of text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = sample;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The message of a text that must not parse.
std::string refusal(const std::string& text) {
  const auto parsed = parse_op_graph(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == errc::invalid_input);
  return parsed.error().what;
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a graph is read with every kind of argument") {
  const auto graph = parse_op_graph(sample);
  REQUIRE(graph);
  CHECK(graph->axes == std::vector<std::pair<std::string, int64_t>>{{"M", 5}, {"N", 7}});
  REQUIRE(graph->nodes.size() == 2);
  const auto& inputs = graph->nodes[1].inputs;
  REQUIRE(inputs.size() == 12);
  CHECK(inputs[0].kind == operand_kind::value);
  CHECK(inputs[0].value == 3);
  CHECK(inputs[1].kind == operand_kind::scalar_input);
  CHECK(inputs[1].text == "eps");
  CHECK(inputs[2].kind == operand_kind::none);
  CHECK(inputs[3].kind == operand_kind::boolean);
  CHECK(inputs[4].kind == operand_kind::integer);
  CHECK(inputs[5].kind == operand_kind::number);
  CHECK(inputs[6].list == std::vector<int64_t>{1, 2});
  CHECK(inputs[7].numbers == std::vector<double>{0.5, 2});
  CHECK(inputs[8].text == "text");
  CHECK(inputs[9].list == std::vector<int64_t>{0, 3});
  CHECK(std::isinf(inputs[10].number));
  CHECK(inputs[11].varies);
  CHECK_FALSE(inputs[4].varies);
  CHECK(graph->values[2].constant[1] == -std::numeric_limits<double>::infinity());
  REQUIRE(find_attr(graph->nodes[0], "dtype") != nullptr);
  CHECK(find_attr(graph->nodes[0], "dtype")->text == "float32");
  CHECK(find_attr(graph->nodes[0], "device") == nullptr);
  REQUIRE(find_value(*graph, 9) != nullptr);
  CHECK(find_value(*graph, 4) == nullptr);
}

TEST_CASE("a graph that is written reads back equal, and writes the same bytes again") {
  const auto graph = parse_op_graph(sample);
  REQUIRE(graph);
  const std::string text = serialise(*graph);
  const auto again = parse_op_graph(text);
  REQUIRE(again);
  CHECK(*again == *graph);
  CHECK(serialise(*again) == text);
}

TEST_CASE("an empty graph is a graph") {
  CHECK(parse_op_graph(
    R"({"schema":"gristmill.graph/1","axes":{},"values":[],"nodes":[],"outputs":[]})"));
}

TEST_CASE("a value must be defined before it is used") {
  CHECK(says(refusal(changed(R"("inputs": [{"value": 0}])", R"("inputs": [{"value": 9}])")),
    "node 0 (_to_copy): it reads value 9"));
  CHECK(says(refusal(changed(R"({"values": [0, 3]})", R"({"values": [0, 77]})")), "77"));
  CHECK(says(refusal(changed(R"("outputs": [9]
})",
               R"("outputs": [8]
})")),
    "value 8"));
}

TEST_CASE("a value has one definition") {
  CHECK(says(refusal(changed(R"("outputs": [3], "attrs")", R"("outputs": [0], "attrs")")),
    "defined already"));
  CHECK(says(
    refusal(changed(R"("outputs": [3], "attrs")", R"("outputs": [5], "attrs")")), "not listed"));
  CHECK(says(refusal(changed(R"({"id": 9)", R"({"id": 3)")), "the id is taken"));
  CHECK(says(refusal(changed(R"("scalar_input": "eps"})", R"("scalar_input": "x"})")), "twice"));
}

TEST_CASE("a message names the field") {
  CHECK(says(refusal(changed(R"("id": 3)", R"("id": 3.5)")), "values[3].id"));
  CHECK(says(refusal(changed(R"("id": 3)", R"("id": 18446744073709551615)")), "values[3].id"));
  CHECK(says(refusal(changed(R"("shape": [2])", R"("shape": "2")")), "values[2].shape"));
  CHECK(says(refusal(changed(R"("op": "odd")", R"("oops": "odd")")), "nodes[1]"));
  CHECK(says(refusal(changed("graph/1", "graph/2")), "graph.schema"));
  CHECK(says(
    refusal(changed(R"({"integer": 7, "varies": true})", R"({"varies": true})")), "exactly one"));
  CHECK(says(refusal(changed(R"([0.5, "-inf"])", R"([0.5])")), "do not fill"));
}

TEST_CASE("what is too large or too deep is refused, not stored") {
  CHECK(says(refusal(changed("\"text\"", std::string(64, '[') + std::string(64, ']'))), "graph"));
  std::string many = "[";
  for (int i = 0; i < 2000; ++i)
    many += "1,";
  CHECK(says(refusal(changed("[1, 2]", many + "1]")), "1024"));
  CHECK(says(refusal(changed(R"("shape": [5, 7], "input")",
               R"("shape": [9000000000, 9000000000, 9000000000], "input")")),
    "too big"));
  CHECK(says(
    refusal(changed(R"("shape": [5, 7], "input")", R"("shape": [1,1,1,1,1,1,1,1,1], "input")")),
    "dimensions"));
  CHECK(says(refusal(std::string((size_t{1} << 20) + 1, ' ')), "bytes"));
}

TEST_CASE("every cut-off text is refused and none crashes") {
  const std::string text = sample;
  for (size_t length = 0; length + 1 < text.size(); ++length)
    CHECK_FALSE(parse_op_graph(text.substr(0, length)));
}

namespace {

constexpr auto twice = R"({
  "schema": "gristmill.graph/1",
  "axes": {"M": 5},
  "axes_again": {"M": 11},
  "values": [
    {"id": 0, "dtype": "float32", "shape": [5, 2], "shape_again": [11, 2], "input": "x"},
    {"id": 1, "dtype": "float32", "shape": [], "scalar_input": "eps"},
    {"id": 2, "dtype": "float32", "shape": [2], "shape_again": [2], "constant": [0.5, 2.0]},
    {"id": 3, "dtype": "float32", "shape": [5, 2], "shape_again": [11, 2]}
  ],
  "nodes": [
    {"op": "odd", "inputs": [{"value": 0}, {"value": 2}, {"integer": 5, "varies": true, "again": 11},
      {"number": 0.5, "varies": true, "again": "inf"}], "outputs": [3]}
  ],
  "outputs": [3]
})";

/// That graph with one piece of text replaced.
std::string changed_twice(const std::string& from, const std::string& to) {
  std::string text = twice;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a graph of two traces has every shape and every varying number twice") {
  const auto graph = parse_op_graph(twice);
  REQUIRE(graph);
  CHECK(graph->axes_again == std::vector<std::pair<std::string, int64_t>>{{"M", 11}});
  CHECK(graph->values[0].shape_again == std::vector<int64_t>{11, 2});
  CHECK(graph->values[1].shape_again.empty());
  CHECK(graph->nodes[0].inputs[2].integer_again == 11);
  CHECK(std::isinf(graph->nodes[0].inputs[3].number_again.value()));
  const auto written = serialise(*graph);
  const auto again = parse_op_graph(written);
  REQUIRE(again);
  CHECK(*again == *graph);
  CHECK(serialise(*again) == written);
  // What was traced once says nothing of a second time.
  CHECK(serialise(*parse_op_graph(sample)).find("again") == std::string::npos);
}

TEST_CASE("a second trace is whole or absent") {
  CHECK(says(refusal(changed_twice(R"("axes_again": {"M": 11},)", "")), "value 0"));
  CHECK(
    says(refusal(changed_twice(R"("shape_again": [11, 2], "input")", R"("input")")), "value 0"));
  CHECK(says(refusal(changed_twice("[11, 2]", "[11]")), "dimensions"));
  CHECK(says(refusal(changed_twice("[11, 2]", "[-11, 2]")), "negative"));
  CHECK(says(refusal(changed_twice("[11, 2]", "[11, 9223372036854775807]")), "too big"));
  CHECK(says(refusal(changed_twice(R"({"M": 11})", R"({"N": 11})")), "axes_again"));
  CHECK(says(refusal(changed_twice(R"({"M": 11})", R"({"M": 11, "N": 3})")), "axes_again"));
  CHECK(says(refusal(changed_twice(R"("shape_again": [2])", R"("shape_again": [3])")), "constant"));
}

TEST_CASE("only a number that varies has another in the second trace") {
  CHECK(says(refusal(changed_twice(R"("varies": true, "again": 11)", R"("again": 11)")), "again"));
  CHECK(says(refusal(changed_twice(R"("again": 11)", R"("again": "x")")), "again"));
  CHECK(says(refusal(changed_twice(R"("again": 11)", R"("agian": 11)")), "unknown key"));
  CHECK(says(
    refusal(changed_twice(R"([{"value": 0},)", R"([{"value": 0, "varies": true, "again": 1},)")),
    "again"));
}

TEST_CASE("names of axes do not count in the structure of two traces either") {
  const auto a = parse_op_graph(twice);
  auto b = *a;
  b.axes[0].first = b.axes_again[0].first = "rows";
  CHECK(structure_of(*a) == structure_of(b));
}

TEST_CASE("names and ids do not count in the structure, everything else does") {
  const auto graph = parse_op_graph(sample);
  REQUIRE(graph);
  op_graph renamed = *graph;
  renamed.axes[0].first = "rows";
  renamed.values[0].name = "y";
  renamed.values[1].name = "epsilon";
  renamed.values[3].id = 30;
  renamed.nodes[0].outputs = {30};
  renamed.nodes[1].inputs[0].value = 30;
  renamed.nodes[1].inputs[1].text = "epsilon";
  renamed.nodes[1].inputs[9].list = {0, 30};
  REQUIRE(validate(renamed));
  CHECK(structure_of(renamed) == structure_of(*graph));

  op_graph other = *graph;
  other.nodes[1].inputs[4].integer = 4;
  CHECK(structure_of(other) != structure_of(*graph));
  other = *graph;
  other.nodes[1].op = "even";
  CHECK(structure_of(other) != structure_of(*graph));
  other = *graph;
  other.nodes[1].inputs[1].text = "another scalar";
  CHECK(structure_of(other) != structure_of(*graph));
}
