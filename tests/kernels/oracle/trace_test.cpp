#include "tests/kernels/oracle/oracle_fixture.hpp"

#include "kernels/builtin.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/trace_plan.hpp"

using namespace gristmill;

namespace {

struct trace_fixture : oracle_fixture {
  trace_fixture() { what.prepare.graph_file = "graph.json"; }

  /// Traces the definition; an empty text when there is no Python for it.
  prepare_answers trace(const std::string& definition_text) {
    what.prepare.definition_text = definition_text;
    what.prepare.python = python_with_torch();
    if (what.prepare.python.empty())
      return {};
    auto def = parse_definition(definition_text, "definition.json");
    REQUIRE_MESSAGE(def, def.error().what);
    auto attempts = make_trace_attempts(*def, {});
    REQUIRE_MESSAGE(attempts, attempts.error().what);
    what.prepare.trace = *attempts;
    return prepare();
  }

  op_graph graph_of(const prepare_answers& answers) {
    REQUIRE_MESSAGE(answers.graph_reason == "", answers.graph_reason);
    auto graph = parse_op_graph(content(answers.graph_file));
    REQUIRE_MESSAGE(graph, graph.error().what);
    return *graph;
  }

  bool skipped() const { return what.prepare.python.empty(); }
};

} // namespace

TEST_CASE_FIXTURE(trace_fixture, "the traces of the built-in problems are the graphs they ship") {
  for (const auto& problem : builtin_problems()) {
    CAPTURE(problem.name);
    const auto answers = trace(problem.definition_text);
    if (skipped())
      return;
    const auto shipped = parse_op_graph(problem.graph_json);
    REQUIRE(shipped);
    CHECK(structure_of(graph_of(answers)) == structure_of(*shipped));
  }
}

TEST_CASE_FIXTURE(trace_fixture, "a scalar input is told from a constant, and a size from both") {
  const auto answers =
    trace(small_definition("def run(x, eps):\n    return (x + eps) * 0.5 / x.shape[0]\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[0].op == "add");
  CHECK(graph.nodes[0].inputs[1].kind == operand_kind::scalar_input);
  CHECK(graph.nodes[0].inputs[1].text == "eps");
  CHECK(graph.nodes[1].inputs[1].kind == operand_kind::number);
  CHECK(graph.nodes[1].inputs[1].number == 0.5);
  CHECK_FALSE(graph.nodes[1].inputs[1].varies);
  CHECK(graph.nodes[2].inputs[1].varies);
  CHECK(graph.axes.size() == 2);
}

TEST_CASE_FIXTURE(
  trace_fixture, "tensors that the reference holds are constants or scalar inputs") {
  const auto answers =
    trace(small_definition("import torch\n"
                           "def run(x, eps):\n    return x * torch.tensor(eps) + torch.tensor([1., "
                           "2., 3., 4., 5., float('inf')])\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  bool constant = false, scalar = false;
  for (const auto& value : graph.values) {
    constant |= value.source == graph_source::constant && value.constant.size() == 6;
    scalar |= value.source == graph_source::scalar_input && value.name == "eps";
  }
  CHECK(constant);
  CHECK(scalar);
}

TEST_CASE_FIXTURE(trace_fixture, "operators that no output needs are left out") {
  const auto answers =
    trace(small_definition("def run(x, eps):\n    unused = x.exp()\n    return x.abs()\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == "abs");
}

TEST_CASE_FIXTURE(
  trace_fixture, "an axis that is split in the reference is traced with a size that splits") {
  const auto answers = trace(small_definition(
    "def run(x, eps):\n    a = x.view(x.shape[0] // 4, 4, 6)\n    return (a * 2).view(x.shape)\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.axes.size() == 2);
  CHECK(graph.axes[0].first == "M");
  CHECK(graph.axes[0].second % 4 == 0);
}

TEST_CASE_FIXTURE(
  trace_fixture, "a reference that cannot be traced has no graph, but a reason and its outputs") {
  struct untraceable {
    std::string body;
    std::string reason;
  };
  for (const auto& [body, reason] : std::vector<untraceable>{
         {"y = torch.zeros_like(x)\n    y[:, :3] = x[:, :3]\n    return y", "in place"},
         {"return x * x.sum().item()", "on the host"},
         {"for i in range(x.shape[0]):\n        x = x + 1\n    return x", "depend on the sizes"},
         {"return x + torch.tensor([[float(i)] * 6 for i in range(x.shape[0])])",
           "depends on the sizes"}}) {
    CAPTURE(body);
    what.prepare.workloads.clear();
    what.prepare.trace.clear();
    what.prepare.oracle = oracle_kind::torch;
    const auto text = small_definition("import torch\ndef run(x, eps):\n    " + body + "\n");
    what.prepare.definition_text = text;
    add("w", {{"M", 3}});
    what.prepare.workloads[0].scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
    const auto answers = trace(text);
    if (skipped())
      return;
    CHECK(answers.graph_file == "");
    CHECK_MESSAGE(answers.graph_reason.find(reason) != std::string::npos, answers.graph_reason);
    CHECK_MESSAGE(
      answers.workloads.at(0).status == verdict_status::passed, answers.workloads[0].reason);
  }
}

TEST_CASE_FIXTURE(trace_fixture, "a reference that fails has no graph and says why") {
  const auto answers = trace(small_definition("def run(x, eps):\n    raise ValueError('no')\n"));
  if (skipped())
    return;
  CHECK(answers.graph_file == "");
  CHECK(answers.graph_reason.find("ValueError: no") != std::string::npos);
}
