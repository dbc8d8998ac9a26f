#include "tests/kernels/corpus.hpp"

#include <cctype>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>

namespace gristmill::test {

namespace {

graph_problem with_graph(problem target) {
  auto graph = parse_op_graph(target.graph_json);
  REQUIRE_MESSAGE(graph, target.name);
  return {std::move(target), std::move(*graph)};
}

/// An expression with its identifiers called something else.
std::string with_words(const std::string& text, const std::map<std::string, std::string>& names) {
  std::string out;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool in_word =
      i < text.size() && (text[i] == '_' || std::isalnum(static_cast<unsigned char>(text[i])) != 0);
    if (in_word) {
      word += text[i];
      continue;
    }
    const auto found = names.find(word);
    out += found == names.end() ? word : found->second;
    word.clear();
    if (i < text.size())
      out += text[i];
  }
  return out;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

std::vector<graph_problem> builtin_corpus() {
  std::vector<graph_problem> corpus;
  for (const auto name : default_problems()) {
    auto one = builtin_problem(name);
    REQUIRE_MESSAGE(one, std::string(name));
    corpus.push_back(with_graph(std::move(*one)));
  }
  return corpus;
}

std::vector<graph_problem> all_builtins() {
  std::vector<graph_problem> corpus;
  for (problem& one : builtin_problems())
    corpus.push_back(with_graph(std::move(one)));
  return corpus;
}

graph_problem builtin_graph(const std::string& name) {
  for (auto& one : all_builtins()) {
    if (one.target.name == name)
      return one;
  }
  FAIL("no built-in problem " << name);
  return {};
}

std::vector<graph_problem> shared_corpus() {
  const char* shared = std::getenv("GRISTMILL_SHARED");
  const char* source = std::getenv("GRISTMILL_SOURCE");
  if (shared == nullptr || source == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SHARED or GRISTMILL_SOURCE is not set; built-in problems only");
    return {};
  }
  std::vector<graph_problem> corpus;
  for (const char* name : {"silu_and_mul_bf16", "rmsnorm", "l1n23_softmax", "l1n40_layernorm",
         "gpumode_sigmoid", "gpumode_gelu_4d", "gpumode_tanh", "gpumode_fused_leaky_relu"}) {
    auto loaded = load_problem(std::filesystem::path(shared) / "data" / "sol-execbench" / name);
    REQUIRE_MESSAGE(loaded, name);
    loaded->graph_json = read_file(
      std::filesystem::path(source) / "tests/corpus/graphs" / fmt::format("{}.json", name));
    corpus.push_back(with_graph(std::move(*loaded)));
  }
  return corpus;
}

std::vector<graph_problem> whole_corpus() {
  auto corpus = builtin_corpus();
  for (auto& one : shared_corpus())
    corpus.push_back(std::move(one));
  return corpus;
}

graph_problem make_problem(const std::string& definition_text, const std::string& workload_text,
  const std::string& graph_text) {
  auto loaded = problem_from_texts("made", definition_text, workload_text, graph_text);
  REQUIRE_MESSAGE(loaded, (loaded ? std::string{} : loaded.error().what));
  return with_graph(std::move(*loaded));
}

graph_problem map_problem(const std::string& nodes_json) {
  const std::string tensor = R"({"shape": ["M", "N"], "dtype": "float32"})";
  std::string values = R"({"id": 0, "dtype": "float32", "shape": [5, 7], "input": "x"})";
  for (int id = 1; id < 12; ++id)
    values +=
      fmt::format(R"(, {{"id": {}, "dtype": "float32", "shape": [5, {}]}})", id, id >= 10 ? 1 : 7);
  return make_problem(
    R"({"name": "made", "axes": {"M": {"type": "var"}, "N": {"type": "var"}}, "inputs": {"x": )"
      + tensor + R"(}, "outputs": {"y": )" + tensor
      + R"(}, "reference": "def run(x):\n    return x\n"})",
    R"({"axes": {"M": 64, "N": 256}, "inputs": {"x": {"type": "random"}}, "uuid": "a"})"
    "\n"
    R"({"axes": {"M": 3, "N": 77}, "inputs": {"x": {"type": "random"}}, "uuid": "b"})",
    R"({"schema": "gristmill.graph/1", "axes": {"M": 5, "N": 7}, "values": [)" + values
      + R"(], "nodes": [)" + nodes_json + R"(], "outputs": [1]})");
}

graph_problem renamed(const graph_problem& from) {
  graph_problem to = from;
  std::map<std::string, std::string> axis_names;
  std::map<std::string, std::string> tensor_names;
  for (auto& one : to.target.def.axes) {
    axis_names[one.name] = fmt::format("ax_{}", axis_names.size());
    one.name = axis_names[one.name];
  }
  for (auto& one : to.target.def.axes)
    one.expression = with_words(one.expression, axis_names);
  const auto rename_tensor = [&](tensor_spec& spec) {
    tensor_names[spec.name] =
      fmt::format("tensor_{}", static_cast<char>('a' + tensor_names.size()));
    spec.name = tensor_names[spec.name];
    for (auto& dim : spec.shape) {
      if (const auto found = axis_names.find(dim); found != axis_names.end())
        dim = found->second;
    }
  };
  for (auto& spec : to.target.def.inputs)
    rename_tensor(spec);
  for (auto& spec : to.target.def.outputs)
    rename_tensor(spec);
  to.target.def.name = to.target.name = "renamed";
  for (auto& work : to.target.workloads) {
    for (auto& [name, value] : work.axes)
      name = axis_names.at(name);
    for (auto& input : work.inputs)
      input.name = tensor_names.at(input.name);
  }
  for (auto* axes : {&to.graph.axes, &to.graph.axes_again})
    for (auto& [name, size] : *axes)
      name = axis_names.at(name);
  for (auto& value : to.graph.values) {
    if (!value.name.empty())
      value.name = tensor_names.at(value.name);
  }
  for (auto& node : to.graph.nodes) {
    for (auto& operand : node.inputs) {
      if (operand.kind == operand_kind::scalar_input)
        operand.text = tensor_names.at(operand.text);
    }
  }
  return to;
}

} // namespace gristmill::test
