#include "kernels/lowering/program_space.hpp"
#include "kernels/lowering/symbolic_shape.hpp"
#include "kernels/lowering/symbolic_size.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/lowering/small_program.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

using size = symbolic_size;

std::vector<std::string> texts(const small_program& program, int64_t id) {
  const auto shapes = infer_shapes(program.graph, program.target);
  REQUIRE_MESSAGE(shapes, (shapes ? std::string{} : shapes.error().what));
  std::vector<std::string> out;
  for (const auto& one : shapes->of.at(id))
    out.push_back(one.plan_text());
  return out;
}

using list = std::vector<std::string>;

/// Axes B, S and H with primes, and the constant E = 24.
small_program with_axes() {
  return small_program({{"B", 3, 7}, {"S", 5, 11}, {"H", 13, 17}, {"E", 24, 24, "", true}});
}

} // namespace

TEST_CASE("a size is a polynomial in one normal form, so that equal sizes are equal values") {
  const auto b = size::axis("B");
  const auto s = size::axis("S");
  CHECK((b * s).plan_text() == "axis.B * axis.S");
  CHECK(s * b == b * s);
  CHECK((b + b).plan_text() == "2 * axis.B");
  CHECK((b - size::number(2)).plan_text() == "axis.B - 2");
  CHECK((size::number(2) - b).plan_text() == "2 - axis.B");
  CHECK((b - b).plan_text() == "0");
  CHECK((b * s + size::number(1) - b).plan_text() == "axis.B * axis.S + 1 - axis.B");
  CHECK(((b + s) * (b - s)) == b * b - s * s);
  CHECK(size::number(6).as_number() == 6);
  CHECK(b.as_axis() == "B");
  CHECK_FALSE((b + b).as_axis());
}

TEST_CASE("a quotient is exact where it can be and rounded down where it cannot") {
  const auto h = size::axis("H");
  CHECK((size::number(4) * h).quotient(2) == size::number(2) * h);
  const auto rounded = (h - size::number(3)).quotient(2) + size::number(1);
  CHECK(rounded.plan_text() == "(axis.H - 3) // 2 + 1");
  CHECK((size::number(3) * rounded).plan_text() == "3 * ((axis.H - 3) // 2) + 3");
  CHECK(rounded.value_at({{"H", 10}}).value() == 4);
  CHECK(rounded.axis_text().value() == "(H - 3) // 2 + 1");
  CHECK((h * size::axis("B")).divided_by(h) == size::axis("B"));
  CHECK_FALSE(h.divided_by(size::axis("B")));
  CHECK_FALSE(h.divided_by(size::number(0)));
}

TEST_CASE("a size says what keeps it from having a value") {
  CHECK_FALSE(size::axis("H").value_at({}));
  CHECK_FALSE((size::number(INT64_MAX) * size::axis("H")).value_at({{"H", 3}}));
  CHECK_THROWS_AS((void)(size::number(INT64_MAX) * size::number(3)), no_template);
  const auto odd = size::axis("odd name") * size::axis("B");
  CHECK(odd.plan_text() == "axis(\"odd name\") * axis.B");
  REQUIRE_FALSE(odd.axis_text());
  CHECK(odd.axis_text().error().code == errc::unsupported);
}

TEST_CASE("a view that merges dimensions has their product, one that splits has what is left") {
  auto p = with_axes();
  const int64_t x = p.input("x", {"B", "S", "E"});
  const int64_t rows = p.op("view", {value(x), integers({15, 24})}, {"B * S", "E"});
  const int64_t heads = p.op("view", {value(rows), integers({3, 5, 4, 6})}, {"B", "S", "4", "6"});
  const int64_t flat = p.op("view", {value(heads), integers({-1})}, {"B * S * 24"});
  p.output("y", flat, {"T"});
  p.target.def.axes.push_back({"T", axis_kind::expression, 0, "B * S * E", ""});
  p.graph.axes.emplace_back("T", 360);
  p.graph.axes_again.emplace_back("T", 7 * 11 * 24);
  CHECK(texts(p, rows) == list{"axis.B * axis.S", "axis.E"});
  CHECK(texts(p, heads) == list{"axis.B", "axis.S", "4", "6"});
  CHECK(texts(p, flat) == list{"axis.T"});
}

TEST_CASE("cat adds, slice and padding take away and add, pooling and convolution divide") {
  auto p = with_axes();
  const int64_t x = p.input("x", {"B", "2", "H", "H"});
  const int64_t w = p.input("w", {"E", "2", "3", "3"});
  const int64_t twice = p.op("cat", {values({x, x}), integer(0)}, {"B * 2", "2", "H", "H"});
  const int64_t part =
    p.op("slice", {value(x), integer(2), integer(1), integer(-2)}, {"B", "2", "H - 3", "H"});
  const int64_t every =
    p.op("slice", {value(x), integer(3), integer(0), integer(INT64_MAX), integer(3)},
      {"B", "2", "H", "(H + 2) // 3"});
  const int64_t padded =
    p.op("constant_pad_nd", {value(x), integers({1, 2}), number(0)}, {"B", "2", "H", "H + 3"});
  const int64_t conv = p.op("convolution",
    {value(x), value(w), none(), integers({2, 2}), integers({1, 1}), integers({1, 1}), flag(false),
      integers({0, 0}), integer(1)},
    {"B", "E", "(H - 1) // 2 + 1", "(H - 1) // 2 + 1"});
  const int64_t pooled =
    p.op("max_pool2d_with_indices", {value(x), integers({3, 3}), integers({2, 2})},
      {"B", "2", "(H - 3) // 2 + 1", "(H - 3) // 2 + 1"});
  p.output("y", twice, {"BB", "2", "H", "H"});
  p.target.def.axes.push_back({"BB", axis_kind::expression, 0, "2 * B", ""});
  CHECK(texts(p, twice).front() == "2 * axis.B");
  CHECK(texts(p, part)[2] == "axis.H - 3");
  CHECK(texts(p, every)[3] == "(axis.H + 2) // 3");
  CHECK(texts(p, padded)[3] == "axis.H + 3");
  CHECK(
    texts(p, conv) == list{"axis.B", "axis.E", "(axis.H - 1) // 2 + 1", "(axis.H - 1) // 2 + 1"});
  CHECK(texts(p, pooled)[2] == "(axis.H - 3) // 2 + 1");
}

TEST_CASE("where no rule says more, a size is that of an operand or of an axis") {
  auto p = with_axes();
  const int64_t x = p.input("x", {"B", "S", "E"});
  const int64_t sum = p.op("sum", {value(x), integers({1})}, {"B", "E"});
  const int64_t turned = p.op("permute", {value(x), integers({2, 0, 1})}, {"E", "B", "S"});
  const int64_t mask = p.op("ones", {integers({5, 5})}, {"S", "S"});
  const int64_t up = p.op("upsample_nearest1d", {value(x)}, {"B", "S", "3 * H"});
  p.output("y", sum, {"B", "E"});
  CHECK(texts(p, sum) == list{"axis.B", "axis.E"});
  CHECK(texts(p, turned) == list{"axis.E", "axis.B", "axis.S"});
  CHECK(texts(p, mask) == list{"axis.S", "axis.S"});
  CHECK(texts(p, up)[2] == "3 * axis.H");
}

TEST_CASE("the second trace tells a number from an axis that happened to be as long") {
  auto p = with_axes();
  const int64_t x = p.input("x", {"B", "S"});
  const int64_t five = p.op("topk", {value(x), integer(5)}, {"B", "5"});
  p.output("y", five, {"B", "5"});
  CHECK(texts(p, five) == list{"axis.B", "5"});
  p.forget_second_trace();
  CHECK(texts(p, five) == list{"axis.B", "axis.S"});
}

TEST_CASE(
  "an expression axis and the formula that always equals it are one size, under a condition") {
  small_program p({{"D", 14, 22}, {"d", 7, 11, "D // 2"}});
  p.workload_at({{"D", 64}});
  const int64_t x = p.input("x", {"D"});
  const int64_t half = p.op("slice", {value(x), integer(0), integer(0), integer(7)}, {"d"});
  const int64_t both = p.op("cat", {values({half, half}), integer(0)}, {"2 * d"});
  p.output("y", both, {"D"});
  const auto shapes = infer_shapes(p.graph, p.target);
  REQUIRE(shapes);
  CHECK(shapes->of.at(half).front().plan_text() == "axis.d");
  CHECK(shapes->of.at(both).front().plan_text() == "axis.D");
  CHECK(shapes->conditions == list{"2 * axis.d == axis.D"});
}

TEST_CASE("a size that no formula explains is an error that names value, dimension and operator") {
  auto p = with_axes();
  const int64_t x = p.input("x", {"B"});
  const int64_t odd = p.op("nonzero", {value(x)}, {"B * B * B * S + 1"});
  p.output("y", odd, {"B"});
  const auto shapes = infer_shapes(p.graph, p.target);
  REQUIRE_FALSE(shapes);
  CHECK(shapes.error().code == errc::unsupported);
  CHECK(shapes.error().what
    == fmt::format("no formula over the axes explains dimension 0 of value {} (size 136 in the "
                   "trace), which operator 'nonzero' makes",
      odd));
}

TEST_CASE("outputs must have the shapes that the definition declares, at every workload") {
  auto p = with_axes();
  p.workload_at({{"B", 2}, {"S", 8}, {"H", 4}});
  const int64_t x = p.input("x", {"B", "S"});
  p.output("y", p.op("exp", {value(x)}, {"B", "S"}), {"B", "H"});
  const auto shapes = infer_shapes(p.graph, p.target);
  REQUIRE_FALSE(shapes);
  CHECK(shapes.error().code == errc::invalid_input);
  CHECK(shapes.error().what.find("[axis.B, axis.S]") != std::string::npos);
}

TEST_CASE("a graph that does not fit its definition is refused") {
  auto p = with_axes();
  p.output("y", p.op("exp", {value(p.input("x", {"B", "S"}))}, {"B", "S"}), {"B", "S"});
  auto other = p.target;
  other.def.inputs.front().name = "z";
  CHECK_FALSE(infer_shapes(p.graph, other));
  other = p.target;
  other.def.outputs.clear();
  CHECK_FALSE(infer_shapes(p.graph, other));
}

TEST_CASE("every size of every graph of ours and of the shared problems has a formula") {
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto shapes = infer_shapes(one.graph, one.target);
    CHECK_MESSAGE(shapes, (shapes ? std::string{} : shapes.error().what));
  }
  for (const auto& one : all_builtins()) {
    CAPTURE(one.target.name);
    const auto shapes = infer_shapes(one.graph, one.target);
    CHECK_MESSAGE(shapes, (shapes ? std::string{} : shapes.error().what));
  }
}
