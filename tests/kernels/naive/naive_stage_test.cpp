#include "kernels/naive/naive_stage.hpp"

#include "tests/kernels/naive/naive_case.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>

using namespace gristmill;
using namespace gristmill::test;

namespace {

naive_case plain_case(const std::string& nodes) {
  naive_case one;
  one.nodes = nodes;
  one.inputs = {"float32 M N"};
  one.outputs = {"float32 M N"};
  return one;
}

/// Why a case is refused; the test fails when it is not.
std::string refusal(const naive_case& one) {
  const auto made = problem_of(one);
  const auto space = read_naive_stage(made.target, made.graph);
  REQUIRE_FALSE(space);
  CHECK(space.error().code == errc::unsupported);
  return space.error().what;
}

} // namespace

TEST_CASE("a refusal names the operator and says why") {
  const auto says = [](const std::string& nodes, const std::string& words) {
    CAPTURE(nodes);
    const std::string what = refusal(plain_case(nodes));
    CAPTURE(what);
    CHECK(what.find(words) != std::string::npos);
  };
  says(node_json("nonzero", R"({"value": 0})", "1"),
    "operator 'nonzero' has a result whose shape depends on the data");
  says(node_json("rand_like", R"({"value": 0})", "1"), "draws random numbers");
  says(node_json("_fft_r2c", R"({"value": 0}, [1], 0, true)", "1"), "complex numbers");
  says(node_json("no_such_operator", R"({"value": 0})", "1"),
    "operator 'no_such_operator' has no naive kernel");
  says(node_json("native_dropout", R"({"value": 0}, 0.5, true)", "1"), "in training");
  says(node_json("add", R"({"value": 0})", "1"), "lacks its argument 1");
  says(node_json("sum", R"({"value": 0}, [7])", "1"), "names dimension 7 of a tensor with 2");
  says(node_json("mul", R"({"value": 0}, {"number": 0.123, "varies": true})", "1"),
    "operator 'mul' has a number 0.123 that follows the shape in a way not understood");
  says(node_json("embedding", R"({"value": 0})", "1"), "no tensor as its argument 1");
}

TEST_CASE("two operators are two stages, views and copies are none") {
  naive_case two = plain_case(node_json("mm", R"({"value": 0}, {"value": 0})", "1") + ", "
    + node_json("exp", R"({"value": 1})", "2"));
  two.inputs = {"float32 M M"};
  two.middle = {"float32 M M"};
  two.outputs = {"float32 M M"};
  CHECK(refusal(two).find("operators 'mm' and 'exp' make two stages") != std::string::npos);

  naive_case views = plain_case(node_json("transpose", R"({"value": 0}, 0, 1)", "1") + ", "
    + node_json("clone", R"({"value": 1})", "2"));
  views.middle = {"float32 N M"};
  views.outputs = {"float32 N M"};
  const auto made = problem_of(views);
  CHECK(space_of(made)->size() >= 1);
}

TEST_CASE("an operator that nobody needs does not count") {
  naive_case one = plain_case(
    node_json("nonzero", R"({"value": 0})", "1") + ", " + node_json("exp", R"({"value": 0})", "2"));
  one.middle = {"float32 M N"};
  const auto made = problem_of(one);
  CHECK(space_of(made)->size() >= 1);
}

TEST_CASE("sizes come from the axes, never from the trace") {
  naive_case one = plain_case(node_json("mm", R"({"value": 0}, {"value": 1})", "2"));
  one.inputs = {"float32 M N", "float32 N K"};
  one.outputs = {"float32 M K"};
  const auto made = problem_of(one);
  const auto kernel = space_of(made)->generate(0);
  for (const char* axis : {"axis.M", "axis.N", "axis.K"})
    CHECK(kernel.plan.find(axis) != std::string::npos);
  for (const char* traced : {"int64_t(5)", "int64_t(7)", "int64_t(3)"})
    CHECK(kernel.source.find(traced) == std::string::npos);
}

TEST_CASE("a size that fits no formula over the axes is refused") {
  naive_case one;
  one.inputs = {"float32 M"};
  one.middle = {"float32 P"};
  one.outputs = {"float32 M"};
  one.expressions = {"P = M * M + 1"};
  one.nodes = node_json("view", R"({"value": 0}, [26])", "1") + ", "
    + node_json("view", R"({"value": 1}, [5])", "2");
  auto made = problem_of(one);
  // Without the axis that explains it.
  made.target.def.axes.pop_back();
  made.graph.axes.pop_back();
  made.graph.axes_again.pop_back();
  const auto space = read_naive_stage(made.target, made.graph);
  REQUIRE_FALSE(space);
  CHECK(space.error().what.find("follows the axes in a way not understood") != std::string::npos);
}

TEST_CASE("points differ in the block size alone, and equal stages give equal texts") {
  const auto made = problem_of(plain_case(node_json("exp", R"({"value": 0})", "1")));
  const auto space = space_of(made);
  std::set<std::string> keys;
  for (size_t point = 0; point < space->size(); ++point) {
    keys.insert(space->key(point));
    CHECK(space->key(point).starts_with("naive/t"));
    CHECK(space->generate(point).source == space->generate(0).source);
  }
  CHECK(keys.size() == space->size());
  CHECK(space->key(space->first()) == "naive/t128");
  CHECK(space_of(made)->generate(1).plan == space->generate(1).plan);
}

TEST_CASE("names of tensors and axes do not matter") {
  naive_case one = plain_case(node_json("mm", R"({"value": 0}, {"value": 1})", "2"));
  one.inputs = {"float32 M N", "float32 N K"};
  one.outputs = {"float32 M K"};
  const auto made = problem_of(one);
  const auto other = renamed(made);
  CHECK(space_of(made)->generate(0).source == space_of(other)->generate(0).source);
}

TEST_CASE("a hostile graph is refused, not followed for ever") {
  // A long chain of copies, and arguments of the wrong kind.
  naive_case chain;
  chain.inputs = {"float32 M"};
  chain.outputs = {"float32 M"};
  for (int i = 0; i < 500; ++i)
    chain.nodes +=
      node_json("clone", fmt::format(R"({{"value": {}}})", i), fmt::format("{}", i + 1))
      + (i + 1 < 500 ? ", " : "");
  chain.middle.assign(499, "float32 M");
  CHECK(refusal(chain).find("too long") != std::string::npos);
  for (const char* op : {"convolution", "index", "topk", "native_layer_norm", "cat", "im2col",
         "scatter", "arange", "pixel_shuffle", "slice_scatter", "_softmax", "permute", "select",
         "upsample_bilinear2d", "max_pool2d_with_indices", "eye", "tril", "bmm", "nll_loss_forward",
         "index_put", "diag_embed", "native_group_norm", "cummax"}) {
    CAPTURE(op);
    for (const char* arguments :
      {"", R"("text", 3, [1, 2, 3])", R"({"value": 0}, -9, -9, -9, -9)",
        R"({"value": 0}, [0], [0], [0], [0], [0], [0], [0])", R"({"values": [0, 0, 0]}, null)"}) {
      const auto made = problem_of(plain_case(node_json(op, arguments, "1")));
      const auto space = read_naive_stage(made.target, made.graph);
      if (!space)
        CHECK_FALSE(space.error().what.empty());
    }
  }
}

TEST_CASE("the page on operators lists every operator") {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  if (source == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SOURCE is not set");
    return;
  }
  std::ifstream in(std::filesystem::path(source) / "docs" / "operators.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const auto names = naive_operator_names();
  CHECK(names.size() > 300);
  for (const std::string& op : names) {
    CAPTURE(op);
    CHECK(page.find("`" + op + "`") != std::string::npos);
  }
}
