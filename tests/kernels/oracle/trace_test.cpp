#include "tests/kernels/oracle/oracle_fixture.hpp"

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
  for (const auto& [body, reason] :
    std::vector<untraceable>{{"return x * x.sum().item()", "on the host"},
      {"return x + torch.rand_like(x) * 0", "random"},
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

TEST_CASE_FIXTURE(trace_fixture, "a second trace gives every shape and every number again") {
  const auto answers =
    trace(small_definition("def run(x, eps):\n    return x.sum(0)[None].expand(x.shape) / "
                           "x.shape[0]\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.axes_again.size() == 2);
  const int64_t again = graph.axes_again[0].second;
  CHECK(again != graph.axes[0].second);
  CHECK(graph.axes_again[1] == graph.axes[1]);
  const auto* x = find_value(graph, 0);
  REQUIRE(x != nullptr);
  CHECK(x->shape == std::vector<int64_t>{graph.axes[0].second, 6});
  CHECK(x->shape_again == std::vector<int64_t>{again, 6});
  const auto& last = graph.nodes.back().inputs[1];
  CHECK(last.varies);
  CHECK(last.integer_again == again);
}

TEST_CASE_FIXTURE(trace_fixture, "a write to a part of a tensor becomes an operator of its own") {
  const auto answers = trace(small_definition(
    "import torch\ndef run(x, eps):\n    y = torch.zeros_like(x)\n    y[:, :3] = x[:, 3:]\n"
    "    y[:, 3] += 1\n    return y\n"));
  if (skipped())
    return;
  size_t scatters = 0;
  for (const auto& node : graph_of(answers).nodes)
    scatters += node.op == "slice_scatter" || node.op == "select_scatter";
  CHECK(scatters >= 2);
}

TEST_CASE_FIXTURE(trace_fixture, "numbers that do not come from the data may be read on the host") {
  const auto answers = trace(small_definition(
    "import torch\ndef run(x, eps):\n    return x * torch.arange(4).sum().item()\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].inputs[1].integer == 6);
}

TEST_CASE_FIXTURE(trace_fixture, "a reference that asks autograd is traced through its gradients") {
  const auto answers = trace(small_definition(
    "def run(x, eps):\n    x = x.clone().requires_grad_()\n    (x * x).sum().backward()\n"
    "    return x.grad\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  CHECK(graph.nodes.size() >= 3);
}

TEST_CASE_FIXTURE(trace_fixture, "operators without a float16 kernel are traced by their shapes") {
  const auto answers = trace(small_definition(
    "import torch\ndef run(x, eps):\n    return torch.nn.functional.gelu(x.half()).float()\n"));
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[1].op == "gelu");
}

TEST_CASE_FIXTURE(trace_fixture, "weights of many gigabytes are traced without making them") {
  auto all =
    ordered_json::parse(small_definition("import torch\ndef run(x, eps):\n    return "
                                         "torch.nn.functional.linear(x, x.new_ones(6, 6))\n"));
  all["axes"]["K"]["value"] = 131072;
  all["inputs"]["w"] = {{"shape", {"K", "K"}}, {"dtype", "float32"}};
  all["reference"] = "import torch\ndef run(x, eps, w):\n    return torch.mm(x, w)\n";
  const auto answers = trace(all.dump());
  if (skipped())
    return;
  const auto graph = graph_of(answers);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == "mm");
  CHECK(find_value(graph, graph.outputs[0])->shape.at(1) == 131072);
}

TEST_CASE_FIXTURE(trace_fixture, "a switch that all workloads set alike is left as it is") {
  const auto text = small_definition("import torch\ndef run(x, eps):\n    return "
                                     "torch.nn.functional.dropout(x, 0.5, bool(eps)) * 2\n");
  auto def = parse_definition(text, "definition.json");
  REQUIRE(def);
  workload off;
  off.axes = {{"M", 3}};
  off.inputs = {{"eps", input_kind::scalar, python_number{0.0}, "", ""}};
  what.prepare.definition_text = text;
  what.prepare.python = python_with_torch();
  if (skipped())
    return;
  what.prepare.trace = make_trace_attempts(*def, {off}).value();
  const auto graph = graph_of(prepare());
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == "mul");
}
