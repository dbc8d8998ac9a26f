#include "kernels/lowering/partition.hpp"
#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/stage_groups.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/lowering/small_program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

struct cut_program {
  std::unique_ptr<const program_graph> program;
  std::vector<partition> partitions;

  explicit cut_program(const small_program& from) {
    auto made = program_graph::make(from.target, from.graph);
    REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
    program = std::move(*made);
    stage_library library(*program);
    auto cuts = partitions_of(*program, from.graph, library);
    REQUIRE_MESSAGE(cuts, (cuts ? std::string{} : cuts.error().what));
    partitions = std::move(*cuts);
  }

  /// Operators of each stage.
  std::vector<std::vector<std::string>> operators(size_t index) const {
    std::vector<std::vector<std::string>> out;
    for (const auto& stage : partitions[index].stages) {
      out.emplace_back();
      for (const auto& node : stage->sub.graph.nodes)
        out.back().push_back(node.op);
    }
    return out;
  }
};

using stages = std::vector<std::vector<std::string>>;

small_program matrices() {
  small_program p({{"M", 3, 7}, {"N", 5, 11}, {"K", 13, 17}});
  p.workload_at({{"M", 64}, {"N", 96}, {"K", 32}});
  return p;
}

} // namespace

TEST_CASE(
  "a graph that one family reads is one kernel, and the last cut has one for each operator") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t a = p.op("exp", {value(x)}, {"M", "N"});
  const int64_t b = p.op("add", {value(a), value(x)}, {"M", "N"});
  p.output("y", p.op("tanh", {value(b)}, {"M", "N"}), {"M", "N"});
  const cut_program cut(p);
  CHECK(cut.operators(0) == stages{{"exp", "add", "tanh"}});
  CHECK(cut.operators(cut.partitions.size() - 1) == stages{{"exp"}, {"add"}, {"tanh"}});
}

TEST_CASE("what follows a matrix product becomes its epilogue") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "K"});
  const int64_t w = p.input("w", {"K", "N"});
  const int64_t bias = p.input("bias", {"N"});
  const int64_t product = p.op("mm", {value(x), value(w)}, {"M", "N"});
  const int64_t sum = p.op("add", {value(product), value(bias)}, {"M", "N"});
  p.output("y", p.op("relu", {value(sum)}, {"M", "N"}), {"M", "N"});
  const cut_program cut(p);
  CHECK(cut.operators(0) == stages{{"mm", "add", "relu"}});
  CHECK(cut.operators(cut.partitions.size() - 1) == stages{{"mm"}, {"add"}, {"relu"}});
}

TEST_CASE("an expensive value that two stages read is computed once") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "2"});
  const int64_t w = p.input("w", {"2", "N"});
  const int64_t product = p.op("mm", {value(x), value(w)}, {"M", "N"});
  p.output("a", p.op("exp", {value(product)}, {"M", "N"}), {"M", "N"});
  const int64_t turned = p.op("permute", {value(product), integers({1, 0})}, {"N", "M"});
  p.output("b", p.op("tanh", {value(turned)}, {"N", "M"}), {"N", "M"});
  const cut_program cut(p);
  for (size_t i = 0; i < cut.partitions.size(); ++i) {
    size_t products = 0;
    for (const auto& one : cut.operators(i))
      products += static_cast<size_t>(std::count(one.begin(), one.end(), "mm"));
    CHECK(products == 1);
  }
}

TEST_CASE(
  "every stage reads inputs and what earlier stages wrote, and all outputs are written once") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto program = program_graph::make(one.target, one.graph);
    REQUIRE(program);
    stage_library library(**program);
    const auto cuts = partitions_of(**program, one.graph, library);
    REQUIRE_MESSAGE(cuts, (cuts ? std::string{} : cuts.error().what));
    CHECK(cuts->size() <= partitions_max);
    for (const partition& cut : *cuts) {
      std::set<int64_t> written;
      for (const auto& stage : cut.stages) {
        CHECK(stage->is_readable());
        for (const stage_tensor& in : stage->sub.inputs) {
          const bool is_there =
            written.contains(in.base) || (*program)->value(in.base).source == graph_source::input;
          CHECK(is_there);
        }
        for (const stage_tensor& out : stage->sub.outputs)
          CHECK(written.insert(out.base).second);
      }
      for (int64_t id : (*program)->graph().outputs)
        CHECK(written.contains((*program)->base(id)));
    }
  }
}

TEST_CASE("a stage is a legal problem: its graph is valid and names what its definition names") {
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto program = program_graph::make(one.target, one.graph);
    REQUIRE(program);
    stage_library library(**program);
    const auto cuts = partitions_of(**program, one.graph, library);
    REQUIRE(cuts);
    for (const auto& stage : cuts->back().stages) {
      const problem& target = stage->sub.target;
      CHECK(validate(stage->sub.graph));
      CHECK(stage->sub.graph.outputs.size() == target.def.outputs.size());
      for (const auto& value : stage->sub.graph.values)
        if (value.source == graph_source::input)
          CHECK(target.def.find_input(value.name) != nullptr);
      for (const workload& work : target.workloads) {
        const auto axes = resolve_axes(target.def, work.axes);
        REQUIRE(axes);
        for (const auto* list : {&target.def.inputs, &target.def.outputs})
          for (const auto& spec : *list)
            CHECK(resolve_shape(spec, *axes));
      }
    }
  }
}

TEST_CASE("a reshape between stages is the same buffer under another shape, and no kernel") {
  small_program p({{"B", 3, 7}, {"S", 5, 11}, {"K", 13, 17}});
  p.workload_at({{"B", 2}, {"S", 8}, {"K", 16}});
  const int64_t x = p.input("x", {"B", "S", "K"});
  const int64_t w = p.input("w", {"K", "K"});
  const int64_t rows = p.op("view", {value(x), integers({15, 13})}, {"B * S", "K"});
  const int64_t product = p.op("mm", {value(rows), value(w)}, {"B * S", "K"});
  const int64_t back = p.op("view", {value(product), integers({3, 5, 13})}, {"B", "S", "K"});
  p.output("y", p.op("softmax_of_ours", {value(back)}, {"B", "S", "K"}), {"B", "S", "K"});
  p.last_node().op = "_softmax";
  p.last_node().inputs = {value(back), integer(-1), flag(false)};
  const cut_program cut(p);
  const partition& plain = cut.partitions.back();
  REQUIRE(plain.stages.size() == 2);
  const stage_tensor& first = plain.stages[0]->sub.inputs[0];
  CHECK(first.name == "x");
  CHECK(first.base == x);
  REQUIRE(first.sizes.size() == 2);
  CHECK(first.sizes[0].plan_text() == "axis.B * axis.S");
  const stage_tensor& second = plain.stages[1]->sub.inputs[0];
  CHECK(second.base == product);
  CHECK(second.sizes.size() == 3);
  CHECK(plain.stages[0]->sub.target.def.outputs[0].shape.front() == "size0");
  REQUIRE(plain.stages[0]->sub.target.def.find_axis("size0") != nullptr);
  CHECK(plain.stages[0]->sub.target.def.find_axis("size0")->expression == "B * S");
}

TEST_CASE("an in-place operator is the plain one, and `copy_` a cast of what it copies") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t row = p.input("row", {"N"}, "bfloat16");
  const int64_t a = p.op("add_", {value(x), number(1.5)}, {"M", "N"});
  const int64_t b = p.op("copy_", {value(a), value(row)}, {"M", "N"});
  const int64_t c = p.op("__and__", {value(b), value(b)}, {"M", "N"});
  p.output("y", c, {"M", "N"});
  const op_graph plain = normalised_graph(p.graph);
  std::vector<std::string> names;
  for (const auto& node : plain.nodes)
    names.push_back(node.op);
  // What `copy_` overwrites is not read, so nobody needs the sum.
  CHECK(names == std::vector<std::string>{"add", "expand", "_to_copy", "__and__"});
  CHECK(validate(plain));
}

TEST_CASE("every output has a buffer of its own: a second name for a value is a copy") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t a = p.op("exp", {value(x)}, {"M", "N"});
  p.output("a", a, {"M", "N"});
  p.output("again", a, {"M", "N"});
  p.output("turned", p.op("permute", {value(a), integers({1, 0})}, {"N", "M"}), {"N", "M"});
  p.output("same", x, {"M", "N"});
  const op_graph plain = normalised_graph(p.graph);
  CHECK(plain.outputs[0] == a);
  CHECK(std::set<int64_t>(plain.outputs.begin(), plain.outputs.end()).size() == 4);
  const cut_program cut(p);
  CHECK(
    cut.operators(cut.partitions.size() - 1) == stages{{"exp"}, {"permute"}, {"clone"}, {"clone"}});
}

TEST_CASE("all results of an operator that are used come from one kernel") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const auto both = p.ops("var_mean", {value(x), integers({1}), integer(0)}, {{"M"}, {"M"}});
  p.last_node().attrs = {{"keepdim", flag(false)}};
  p.output("var", both[0], {"M"});
  p.output("mean", both[1], {"M"});
  const cut_program cut(p);
  REQUIRE(cut.partitions.back().stages.size() == 1);
  CHECK(cut.partitions.back().stages[0]->sub.outputs.size() == 2);
}

TEST_CASE("an operator without a kernel is an error that names it") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t a = p.op("exp", {value(x)}, {"M", "N"});
  p.output("y", p.op("no_such_operator", {value(a)}, {"M", "N"}), {"M", "N"});
  const auto program = program_graph::make(p.target, p.graph);
  REQUIRE(program);
  stage_library library(**program);
  const auto cuts = partitions_of(**program, p.graph, library);
  REQUIRE_FALSE(cuts);
  CHECK(cuts.error().code == errc::unsupported);
  CHECK(cuts.error().what.find("no_such_operator") != std::string::npos);
}

TEST_CASE("a value of a type that no launch plan has is refused only where it needs a buffer") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t odd = p.op("_to_copy", {value(x)}, {"M", "N"}, "complex64");
  p.output("y", p.op("no_such_operator", {value(odd)}, {"M", "N"}, "float32"), {"M", "N"});
  const auto program = program_graph::make(p.target, p.graph);
  REQUIRE(program);
  stage_library library(**program);
  const auto plain = plain_partition(**program, library);
  REQUIRE_FALSE(plain);
  CHECK(plain.error().what.find("complex64") != std::string::npos);
  CHECK(plain.error().what.find("_to_copy") != std::string::npos);
}

TEST_CASE("a graph of more kernels than a plan has steps says so; a longer one is not cut at all") {
  for (const size_t count : {300U, 1100U}) {
    auto p = matrices();
    int64_t last = p.input("x", {"M", "N"});
    for (size_t i = 0; i < count; ++i)
      last = p.op("cumsum", {value(last), integer(1)}, {"M", "N"});
    p.output("y", last, {"M", "N"});
    const auto program = program_graph::make(p.target, p.graph);
    REQUIRE(program);
    stage_library library(**program);
    const auto cuts = partitions_of(**program, p.graph, library);
    REQUIRE_FALSE(cuts);
    CHECK(cuts.error().code == errc::unsupported);
    CHECK(cuts.error().what.find(std::to_string(count)) != std::string::npos);
  }
}

TEST_CASE("stages that would wait for each other are never made") {
  auto p = matrices();
  const int64_t x = p.input("x", {"M", "N"});
  const int64_t a = p.op("exp", {value(x)}, {"M", "N"});
  const int64_t b = p.op("cumsum", {value(a), integer(0)}, {"M", "N"});
  const int64_t c = p.op("add", {value(a), value(b)}, {"M", "N"});
  p.output("a", a, {"M", "N"});
  p.output("c", c, {"M", "N"});
  const auto program = program_graph::make(p.target, p.graph);
  REQUIRE(program);
  auto groups = stage_groups::one_an_operator(**program);
  REQUIRE(groups.groups().size() == 3);
  CHECK(groups.in_order(**program));
  // The first and the last as one stage: the one between needs the first, the last needs it.
  groups.merge(0, 2);
  CHECK_FALSE(groups.in_order(**program));
}
