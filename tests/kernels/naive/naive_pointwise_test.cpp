#include "tests/kernels/naive/naive_case.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// A function of one element, and of two.
struct unary_row {
  const char* op;
  double (*f)(double);
  const char* more = "";
};

struct binary_row {
  const char* op;
  double (*f)(double, double);
  const char* attrs = "";
};

naive_case unary_case(const unary_row& row, const std::string& dtype_name) {
  naive_case one;
  one.nodes = node_json(row.op, fmt::format(R"({{"value": 0}}{})", row.more), "1");
  one.inputs = {dtype_name + " M N"};
  one.outputs = {dtype_name + " M N"};
  one.expected = [row](const std::vector<tensor>& in, const case_sizes&) {
    tensor out;
    for (float x : in[0])
      out.push_back(static_cast<float>(row.f(static_cast<double>(x))));
    return std::vector<tensor>{out};
  };
  return one;
}

naive_case binary_case(
  const binary_row& row, const std::string& from, const std::string& to, int below) {
  naive_case one;
  one.nodes = node_json(row.op, R"({"value": 0}, {"value": 1})", "2", row.attrs);
  // The second operand is broadcast along the first dimension.
  one.inputs = {from + " M N", from + " N"};
  one.outputs = {to + " M N"};
  one.below = {below, below};
  one.expected = [row](const std::vector<tensor>& in, const case_sizes& sizes) {
    tensor out;
    for (size_t i = 0; i < in[0].size(); ++i)
      out.push_back(static_cast<float>(row.f(static_cast<double>(in[0][i]),
        static_cast<double>(in[1][i % static_cast<size_t>(sizes.n)]))));
    return std::vector<tensor>{out};
  };
  return one;
}

constexpr unary_row unary_rows[] = {
  {"neg", [](double x) { return -x; }},
  {"abs", [](double x) { return std::abs(x); }},
  {"exp", [](double x) { return std::exp(x); }},
  {"erf", [](double x) { return std::erf(x); }},
  {"sigmoid", sigmoid},
  {"silu", [](double x) { return x * sigmoid(x); }},
  {"tanh", [](double x) { return std::tanh(x); }},
  {"round", [](double x) { return std::nearbyint(x); }},
  {"hardswish", [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
  {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
  {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
  {"softplus", [](double x) { return 2 * x > 1 ? x : std::log1p(std::exp(2 * x)) / 2; }, ", 2, 1"},
  {"leaky_relu", [](double x) { return x > 0 ? x : 0.2 * x; }, ", 0.2"},
  {"elu", [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, ", 0.5"},
  {"hardtanh", [](double x) { return std::min(std::max(x, -0.5), 0.25); }, ", -0.5, 0.25"},
  {"clamp", [](double x) { return std::max(x, -0.5); }, ", -0.5, null"},
  {"rsub", [](double x) { return 3 - 2 * x; }, ", 3, 2"},
  {"pow", [](double x) { return x * x * x; }, ", 3"},
};

constexpr binary_row float_rows[] = {
  {"add", [](double x, double y) { return x - 0.5 * y; }, R"("alpha": -0.5)"},
  {"maximum", [](double x, double y) { return std::max(x, y); }},
  {"atan2", [](double x, double y) { return std::atan2(x, y); }},
  {"gelu_backward",
    [](double g, double x) {
      return g
        * (0.5 * (1 + std::erf(x / std::sqrt(2.0)))
          + x * std::exp(-0.5 * x * x) / std::sqrt(2 * 3.14159265358979323846));
    }},
  {"silu_backward", [](double g, double x) { return g * sigmoid(x) * (1 + x * (1 - sigmoid(x))); }},
  {"tanh_backward", [](double g, double y) { return g * (1 - y * y); }},
};

constexpr binary_row integer_rows[] = {
  {"mul", [](double x, double y) { return x * y; }},
  {"bitwise_xor",
    [](double x, double y) {
      return static_cast<double>(static_cast<int>(x) ^ static_cast<int>(y));
    }},
  {"remainder", [](double x, double y) { return y == 0 ? 0 : std::fmod(x, y); }},
};

constexpr binary_row truth_rows[] = {
  {"lt", [](double x, double y) { return x < y ? 1.0 : 0.0; }},
  {"eq", [](double x, double y) { return x == y ? 1.0 : 0.0; }},
  {"logical_xor", [](double x, double y) { return (x != 0) != (y != 0) ? 1.0 : 0.0; }},
};

} // namespace

TEST_CASE("pointwise operators compute in float32 what double says") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const unary_row& row : unary_rows)
    check_case(bench, unary_case(row, "float32"));
  for (const binary_row& row : float_rows)
    check_case(bench, binary_case(row, "float32", "float32", 0));
}

TEST_CASE("pointwise operators round to the 16 bits of their result") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  check_case(bench, unary_case(unary_rows[2], "bfloat16"));
  check_case(bench, unary_case(unary_rows[5], "float16"));
}

TEST_CASE("integers and truth values are exact") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const binary_row& row : integer_rows) {
    check_case(bench, binary_case(row, "int64", "int64", 90));
    check_case(bench, binary_case(row, "int32", "int32", 90));
  }
  for (const binary_row& row : truth_rows) {
    check_case(bench, binary_case(row, "int64", "bool", 3));
    check_case(bench, binary_case(row, "float32", "bool", 3));
  }
}

TEST_CASE("a cast truncates to integers, rounds to floats and asks for zero") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const auto cast = [&](const std::string& from, const std::string& to, double (*f)(double)) {
    naive_case one = unary_case({"_to_copy", f}, from);
    one.outputs = {to + " M N"};
    check_case(bench, one);
  };
  const auto same = [](double x) { return x; };
  cast("float32", "int32", [](double x) { return std::trunc(x); });
  cast("float64", "int8", [](double x) { return std::trunc(x); });
  cast("float32", "bool", [](double x) { return x != 0 ? 1.0 : 0.0; });
  cast("float32", "bfloat16", same);
  cast("float16", "float64", same);
  // 3 explicit bits: a unit in the last place of numbers below 2 is 1/8, or less for smaller ones.
  cast("float32", "float8_e4m3fn", [](double x) {
    if (x == 0)
      return 0.0;
    const int exponent = std::max(static_cast<int>(std::floor(std::log2(std::abs(x)))), -6);
    return std::ldexp(std::nearbyint(std::ldexp(x, 3 - exponent)), exponent - 3);
  });
}

TEST_CASE("a scalar input of the definition is a number of the call") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const auto made = make_problem(
    R"({"name": "made", "axes": {"M": {"type": "var"}}, "inputs": {
        "x": {"shape": ["M"], "dtype": "float32"}, "s": {"shape": null, "dtype": "float32"}},
      "outputs": {"y": {"shape": ["M"], "dtype": "float32"}},
      "reference": "def run(x, s):\n    return x * s\n"})",
    R"({"axes": {"M": 6}, "uuid": "a", "inputs": {"x": {"type": "random"}, )"
    R"("s": {"type": "scalar", "value": 0.75}}})",
    R"({"schema": "gristmill.graph/1", "axes": {"M": 5},
      "values": [{"id": 0, "dtype": "float32", "shape": [5], "input": "x"},
                 {"id": 1, "dtype": "float32", "shape": [5]}],
      "nodes": [{"op": "mul", "inputs": [{"value": 0}, {"scalar_input": "s"}], "outputs": [1]}],
      "outputs": [1]})");
  const auto space = space_of(made);
  const tensor x = {1, -2, 3, 0.5f, 0, 8};
  const auto got = bench.outputs(space->generate(0), made.target, made.target.workloads[0], {x});
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(got[0][i] == x[i] * 0.75f);
}

TEST_CASE("where and masked_fill choose by truth values of another shape") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("where", R"({"value": 0}, {"value": 1}, {"value": 2})", "3");
  one.inputs = {"bool M 1", "float32 M N", "float32 N"};
  one.outputs = {"float32 M N"};
  one.below = {2};
  one.expected = [](const std::vector<tensor>& in, const case_sizes& sizes) {
    const auto n = static_cast<size_t>(sizes.n);
    tensor out;
    for (size_t i = 0; i < in[1].size(); ++i)
      out.push_back(in[0][i / n] != 0 ? in[1][i] : in[2][i % n]);
    return std::vector<tensor>{out};
  };
  check_case(bench, one);
  one.nodes = node_json("masked_fill", R"({"value": 1}, {"value": 0}, {"number": "-inf"})", "3");
  one.expected = [](const std::vector<tensor>& in, const case_sizes& sizes) {
    tensor out;
    for (size_t i = 0; i < in[1].size(); ++i)
      out.push_back(in[0][i / static_cast<size_t>(sizes.n)] != 0 ? -INFINITY : in[1][i]);
    return std::vector<tensor>{out};
  };
  check_case(bench, one);
}
