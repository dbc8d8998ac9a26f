#include "tests/kernels/families/product_problem.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gristmill::test {

namespace {

// Of the axes M, K and N in the two traces.
constexpr int first_trace[] = {5, 7, 11};
constexpr int second_trace[] = {13, 17, 19};

std::string value_text(
  int id, const std::string& dtype, int rows, int columns, const std::string& extra) {
  const auto shape = [&](const int* sizes) {
    return fmt::format("[{}, {}]", sizes[rows], sizes[columns]);
  };
  return fmt::format(R"({{"id": {}, "dtype": "{}", "shape": {}, "shape_again": {}{}}})", id, dtype,
    shape(first_trace), shape(second_trace), extra);
}

std::string graph_text(const std::string& values, const std::string& nodes, int output) {
  return fmt::format(R"({{"schema": "gristmill.graph/1", "axes": {{"M": 5, "K": 7, "N": 11}},
    "axes_again": {{"M": 13, "K": 17, "N": 19}}, "values": [{}], "nodes": [{}], "outputs": [{}]}})",
    values, nodes, output);
}

std::string definition_text(
  const std::string& dtype, const std::string& left, const std::string& right) {
  return fmt::format(R"({{"name": "product", "axes": {{"M": {{"type": "var"}},
    "K": {{"type": "var"}}, "N": {{"type": "var"}}}},
    "inputs": {{"x": {{"shape": {1}, "dtype": "{0}"}}, "w": {{"shape": {2}, "dtype": "{0}"}}}},
    "outputs": {{"y": {{"shape": ["M", "N"], "dtype": "{0}"}}}},
    "reference": "import torch\n\ndef run(x, w):\n    raise NotImplementedError\n"}})",
    dtype, left, right);
}

std::string workload_text(const std::vector<product_sizes>& sizes) {
  std::string text;
  for (const auto& one : sizes)
    text += fmt::format(R"({{"axes": {{"M": {}, "K": {}, "N": {}}}, "inputs": {{)"
                        R"("x": {{"type": "random"}}, "w": {{"type": "random"}}}}, "uuid": "w{}"}})"
                        "\n",
      one.rows, one.depth, one.columns, text.size());
  return text;
}

void read(const std::string& definition, const std::string& workloads, const std::string& graph,
  problem& target, op_graph& parsed) {
  auto made = problem_from_texts("product", definition, workloads, graph);
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  target = std::move(*made);
  auto read_graph = parse_op_graph(graph);
  REQUIRE_MESSAGE(read_graph, (read_graph ? std::string{} : read_graph.error().what));
  parsed = std::move(*read_graph);
}

} // namespace

product_problem::product_problem(const std::string& dtype, bool left_transposed,
  bool right_transposed, const std::vector<product_sizes>& sizes) {
  std::string values =
    value_text(0, dtype, left_transposed ? 1 : 0, left_transposed ? 0 : 1, R"(, "input": "x")")
    + ", "
    + value_text(1, dtype, right_transposed ? 2 : 1, right_transposed ? 1 : 2, R"(, "input": "w")");
  std::string nodes;
  int left = 0;
  int right = 1;
  if (left_transposed) {
    values += ", " + value_text(2, dtype, 0, 1, "");
    nodes += R"({"op": "t", "inputs": [{"value": 0}], "outputs": [2]}, )";
    left = 2;
  }
  if (right_transposed) {
    values += ", " + value_text(3, dtype, 1, 2, "");
    nodes += R"({"op": "t", "inputs": [{"value": 1}], "outputs": [3]}, )";
    right = 3;
  }
  values += ", " + value_text(4, dtype, 0, 2, "");
  nodes += fmt::format(
    R"({{"op": "mm", "inputs": [{{"value": {}}}, {{"value": {}}}], "outputs": [4]}})", left, right);
  read(definition_text(dtype, left_transposed ? R"(["K", "M"])" : R"(["M", "K"])",
         right_transposed ? R"(["N", "K"])" : R"(["K", "N"])"),
    workload_text(sizes), graph_text(values, nodes, 4), target, graph);
}

node_problem::node_problem(const std::string& nodes_json) {
  std::string values = value_text(0, "float32", 0, 1, R"(, "input": "x")") + ", "
    + value_text(1, "float32", 1, 2, R"(, "input": "w")");
  for (int id = 2; id < 10; ++id) {
    if (nodes_json.find(fmt::format("\"outputs\": [{}]", id)) != std::string::npos)
      values += ", " + value_text(id, "float32", 0, 2, "");
  }
  read(definition_text("float32", R"(["M", "K"])", R"(["K", "N"])"), workload_text({{64, 32, 48}}),
    graph_text(values, nodes_json, 2), target, graph);
}

} // namespace gristmill::test
