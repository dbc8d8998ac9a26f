#include "kernels/work_count.hpp"
#include "protocol/op_graph.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

// The known defects of the published bound (specification 7.4), a case each.
using namespace gristmill;

namespace {

size_t at(mac_class which) {
  return static_cast<size_t>(which);
}

/// A problem from shapes: axes M (traced 3), K (traced 5), N (traced 7), P (traced 11).
struct graph_case {
  definition def;
  op_graph graph;
  axis_values axes{{"M", 100}, {"K", 64}, {"N", 32}, {"P", 1000}};
  int64_t next = 0;

  graph_case() { graph.axes = {{"M", 3}, {"K", 5}, {"N", 7}, {"P", 11}}; }

  int64_t traced(const std::string& size) const {
    for (const auto& [axis_name, value] : graph.axes)
      if (axis_name == size)
        return value;
    return std::stoll(size);
  }

  std::vector<int64_t> traced(const std::vector<std::string>& shape) const {
    std::vector<int64_t> out;
    for (const auto& size : shape)
      out.push_back(traced(size));
    return out;
  }

  int64_t input(const char* input_name, dtype type, std::vector<std::string> shape) {
    graph.values.push_back(
      {next, std::string{name(type)}, traced(shape), {}, graph_source::input, input_name, {}});
    def.inputs.push_back({input_name, type, false, std::move(shape), ""});
    return next++;
  }

  int64_t node(const char* op, const std::vector<int64_t>& operands, const char* type,
    const std::vector<std::string>& shape, const std::vector<graph_operand>& more = {}) {
    graph_node one;
    one.op = op;
    for (int64_t id : operands) {
      graph_operand operand;
      operand.kind = operand_kind::value;
      operand.value = id;
      one.inputs.push_back(operand);
    }
    one.inputs.insert(one.inputs.end(), more.begin(), more.end());
    one.outputs = {next};
    graph.values.push_back({next, type, traced(shape), {}, graph_source::computed, "", {}});
    graph.nodes.push_back(one);
    return next++;
  }

  void output(int64_t id, dtype type, std::vector<std::string> shape) {
    graph.outputs.push_back(id);
    def.outputs.push_back({"out" + std::to_string(id), type, false, std::move(shape), ""});
  }

  work_count count() const {
    const auto valid = validate(graph);
    REQUIRE_MESSAGE(valid, (valid ? "" : valid.error().what));
    const auto out = count_work(def, &graph, axes);
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return *out;
  }
};

graph_operand numbers(std::vector<int64_t> list) {
  graph_operand out;
  out.kind = operand_kind::integers;
  out.list = std::move(list);
  return out;
}

graph_operand number(int64_t value) {
  graph_operand out;
  out.kind = operand_kind::integer;
  out.integer = value;
  return out;
}

graph_operand yes(bool value) {
  graph_operand out;
  out.kind = operand_kind::boolean;
  out.integer = value ? 1 : 0;
  return out;
}

} // namespace

TEST_CASE("a matrix product is counted at the real sizes, also where axes were flattened") {
  graph_case c;
  const auto x = c.input("x", dtype::bfloat16, {"M", "P", "K"});
  const auto w = c.input("w", dtype::bfloat16, {"K", "N"});
  const auto flat = c.node("view", {x}, "bfloat16", {"33", "K"});
  const auto y = c.node("mm", {flat, w}, "bfloat16", {"33", "N"});
  c.output(y, dtype::bfloat16, {"M", "P", "N"});
  const auto out = c.count();
  CHECK(out.macs[at(mac_class::f16)] == 100ull * 1000 * 64 * 32);
  CHECK(out.bytes == 2ull * (100 * 1000 * 64 + 64 * 32 + 100 * 1000 * 32));
  CHECK(out.method.find("multiply-adds of 1 operators") != std::string::npos);
}

TEST_CASE("a grouped convolution is counted by its groups, and padding is no work") {
  for (int64_t groups : {1, 7}) {
    graph_case c;
    // Seven channels; the weight has 7 / groups of them.
    const auto x = c.input("x", dtype::float32, {"M", "N", "P", "P"});
    const auto w = c.input("w", dtype::float32, {"N", groups == 1 ? "N" : "1", "3", "3"});
    const auto y = c.node("convolution", {x, w}, "float32", {"M", "N", "P", "P"},
      {graph_operand{}, numbers({1, 1}), numbers({1, 1}), numbers({1, 1}), yes(false),
        numbers({0, 0}), number(groups)});
    c.output(y, dtype::float32, {"M", "N", "P", "P"});
    // Of 3 taps over 1000 places with one of padding, 2 are outside.
    const uint64_t taps = 3 * 1000 - 2;
    CHECK(c.count().macs[at(mac_class::f32)] == 100ull * 32 * (groups == 1 ? 32 : 1) * taps * taps);
  }
}

TEST_CASE("a paged cache is charged by the rows that are read, not by its allocation") {
  graph_case c;
  const auto cache = c.input("cache", dtype::bfloat16, {"P", "K"});
  const auto rows = c.input("rows", dtype::int64, {"M"});
  // As references do it: the whole cache is made wide, then a few pages of it are taken.
  const auto wide = c.node("_to_copy", {cache}, "float32", {"P", "K"});
  const auto taken = c.node("index", {wide, rows}, "float32", {"M", "K"});
  const auto y = c.node("exp", {taken}, "float32", {"M", "K"});
  c.output(y, dtype::float32, {"M", "K"});
  CHECK(c.count().bytes == 2ull * 100 * 64 + 8 * 100 + 4 * 100 * 64);
  // Never more than there is.
  c.axes[0].second = 5000;
  CHECK(c.count().bytes == 2ull * 1000 * 64 + 8 * 5000 + 4 * 5000 * 64);
}

TEST_CASE("inputs that no output depends on are not charged") {
  graph_case c;
  const auto x = c.input("x", dtype::float32, {"M", "K"});
  const auto unread = c.input("unread", dtype::float32, {"P", "P"});
  c.input("unused", dtype::float32, {"P", "P"});
  c.node("exp", {unread}, "float32", {"P", "P"});
  const auto y = c.node("softplus", {x}, "float32", {"M", "K"});
  c.output(y, dtype::float32, {"M", "K"});
  CHECK(c.count().bytes == 4ull * 2 * 100 * 64);
}

TEST_CASE("every tensor is priced at its own width, and a product at what feeds it") {
  graph_case c;
  const auto x = c.input("x", dtype::bfloat16, {"M", "K"});
  const auto w = c.input("w", dtype::float8_e4m3fn, {"K", "N"});
  const auto scale = c.input("scale", dtype::float64, {"N"});
  // Computed in float32, as references do: a kernel feeds 16 and 8 bits.
  const auto wide_x = c.node("_to_copy", {x}, "float32", {"M", "K"});
  const auto wide_w = c.node("_to_copy", {w}, "float32", {"K", "N"});
  const auto product = c.node("mm", {wide_x, wide_w}, "float32", {"M", "N"});
  const auto y = c.node("mul", {product, scale}, "float32", {"M", "N"});
  c.output(y, dtype::float32, {"M", "N"});
  const auto out = c.count();
  CHECK(out.bytes == 2ull * 100 * 64 + 64 * 32 + 8 * 32 + 4 * 100 * 32);
  // The wider of the two operands decides.
  CHECK(out.macs[at(mac_class::f16)] == 100ull * 64 * 32);
  CHECK(out.macs[at(mac_class::f32)] == 0);
  CHECK(out.macs[at(mac_class::f64)] == 0);
}

TEST_CASE("arithmetic that no output depends on is not counted") {
  graph_case c;
  const auto x = c.input("x", dtype::float32, {"M", "K"});
  const auto w = c.input("w", dtype::float32, {"K", "N"});
  c.node("mm", {x, w}, "float32", {"M", "N"});
  const auto y = c.node("mm", {x, w}, "float32", {"M", "N"});
  c.output(y, dtype::float32, {"M", "N"});
  CHECK(c.count().macs[at(mac_class::f32)] == 100ull * 64 * 32);
}

TEST_CASE("the bytes are never below what the graph shows to be read and written") {
  // Both halves of an input are read: the whole is charged, not one half.
  graph_case c;
  c.graph.axes.emplace_back("D", 10);
  c.axes.emplace_back("D", 128);
  const auto x = c.input("x", dtype::bfloat16, {"M", "D"});
  const auto left = c.node("slice", {x}, "bfloat16", {"M", "K"}, {number(1), number(0), number(5)});
  const auto right =
    c.node("slice", {x}, "bfloat16", {"M", "K"}, {number(1), number(5), number(10)});
  const auto y = c.node("atan2", {left, right}, "bfloat16", {"M", "K"});
  c.output(y, dtype::bfloat16, {"M", "K"});
  CHECK(c.count().bytes == 2ull * (100 * 128 + 100 * 64));
  // One half alone is half.
  c.graph.nodes[2].inputs[1] = c.graph.nodes[2].inputs[0];
  CHECK(c.count().bytes == 2ull * (100 * 64 + 100 * 64));
}

TEST_CASE("what cannot be told is left out and named, never guessed high") {
  graph_case c;
  const auto x = c.input("x", dtype::float32, {"M", "K"});
  const auto odd = c.node("nonzero_rows", {x}, "float32", {"13", "K"});
  const auto w = c.input("w", dtype::float32, {"K", "N"});
  const auto y = c.node("mm", {odd, w}, "float32", {"13", "N"});
  c.output(y, dtype::float32, {"M", "N"});
  // Smaller than it was traced: a 13 may be a size that shrinks.
  c.axes[0].second = 1;
  auto out = c.count();
  CHECK(out.macs == mac_counts{});
  CHECK(out.method.find("not counted: mm") != std::string::npos);
  graph_case d;
  const auto q = d.input("q", dtype::float16, {"M", "K"});
  const auto z = d.node("scaled_dot_product_attention", {q, q, q}, "float16", {"M", "K"});
  d.output(z, dtype::float16, {"M", "K"});
  CHECK(d.count().method.find("not counted: scaled_dot_product_attention") != std::string::npos);
}

TEST_CASE("a batched and a transposed product, and a vector, have their sizes") {
  graph_case c;
  const auto a = c.input("a", dtype::float16, {"M", "K", "P"});
  const auto b = c.input("b", dtype::float16, {"M", "P", "N"});
  const auto y = c.node("bmm", {a, b}, "float16", {"M", "K", "N"});
  c.output(y, dtype::float16, {"M", "K", "N"});
  CHECK(c.count().macs[at(mac_class::f16)] == 100ull * 64 * 1000 * 32);
  graph_case d;
  const auto bias = d.input("bias", dtype::float32, {"N"});
  const auto x = d.input("x", dtype::float32, {"M", "K"});
  const auto w = d.input("w", dtype::float32, {"N", "K"});
  const auto t = d.node("t", {w}, "float32", {"K", "N"});
  const auto z = d.node("addmm", {bias, x, t}, "float32", {"M", "N"});
  d.output(z, dtype::float32, {"M", "N"});
  CHECK(d.count().macs[at(mac_class::f32)] == 100ull * 64 * 32);
}
