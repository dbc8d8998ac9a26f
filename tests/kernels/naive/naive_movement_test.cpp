#include "tests/kernels/naive/naive_case.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tuple>

using namespace gristmill;
using namespace gristmill::test;

namespace {

using tensors = std::vector<tensor>;

size_t at(int64_t number) {
  return static_cast<size_t>(number);
}

/// A tensor filled by a function of the index.
template <class F>
tensor filled(int64_t rows, int64_t columns, const F& f) {
  tensor out;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      out.push_back(f(i, j));
  }
  return out;
}

} // namespace

TEST_CASE("a reshape of a permuted slice is followed element by element") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("slice", R"({"value": 0}, 2, 1, 9223372036854775807)", "1") + ", "
    + node_json("permute", R"({"value": 1}, [1, 0, 2])", "2") + ", "
    + node_json("clone", R"({"value": 2})", "3") + ", "
    + node_json("view", R"({"value": 3}, [7, -1])", "4") + ", "
    + node_json("neg", R"({"value": 4})", "5");
  one.inputs = {"float32 M N 4"};
  one.middle = {"float32 M N 3", "float32 N M 3", "float32 N M 3", "float32 N P"};
  one.outputs = {"float32 N P"};
  one.expressions = {"P = M * 3"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.n, s.m * 3, [&](int64_t n, int64_t rest) {
      return -in[0][at((rest / 3 * s.n + n) * 4 + rest % 3 + 1)];
    })};
  };
  check_case(bench, one);
}

TEST_CASE("slices with steps, from the end, and up to an axis") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M 12"};
  one.middle = {"float32 M 4"};
  one.outputs = {"float32 M 4"};
  one.nodes = node_json("slice", R"({"value": 0}, 1, 1, 12, 3)", "1") + ", "
    + node_json("neg", R"({"value": 1})", "2");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{
      filled(s.m, 4, [&](int64_t m, int64_t j) { return -in[0][at(m * 12 + 1 + 3 * j)]; })};
  };
  check_case(bench, one);
  one.nodes = node_json("slice", R"({"value": 0}, -1, -4, 9223372036854775807)", "1") + ", "
    + node_json("neg", R"({"value": 1})", "2");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{
      filled(s.m, 4, [&](int64_t m, int64_t j) { return -in[0][at(m * 12 + 8 + j)]; })};
  };
  check_case(bench, one);
  // 5 is the axis M in the trace, and says so.
  one.inputs = {"float32 64 N", "float32 M N"};
  one.middle = {"float32 M N"};
  one.outputs = {"float32 M N"};
  one.nodes = node_json("slice", R"({"value": 0}, 0, 0, {"integer": 5, "varies": true})", "2")
    + ", " + node_json("mul", R"({"value": 2}, {"value": 1})", "3");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.n,
      [&](int64_t m, int64_t n) { return in[0][at(m * s.n + n)] * in[1][at(m * s.n + n)]; })};
  };
  check_case(bench, one);
}

TEST_CASE("cat, stack, pad, flip, roll and repeat put elements where they belong") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M N", "float32 M K"};
  one.outputs = {"float32 M P"};
  one.expressions = {"P = N + K"};
  one.nodes = node_json("cat", R"({"values": [0, 1]}, -1)", "2");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.n + s.k, [&](int64_t m, int64_t j) {
      return j < s.n ? in[0][at(m * s.n + j)] : in[1][at(m * s.k + j - s.n)];
    })};
  };
  check_case(bench, one);
  one.inputs = {"float32 M N"};
  one.expressions = {"P = N + 3", "Q = N * 2"};
  one.nodes = node_json("constant_pad_nd", R"({"value": 0}, [2, 1], 0.5)", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.n + 3, [&](int64_t m, int64_t j) {
      return j < 2 || j >= s.n + 2 ? 0.5f : in[0][at(m * s.n + j - 2)];
    })};
  };
  check_case(bench, one);
  one.outputs = {"float32 M Q"};
  one.nodes = node_json("repeat", R"({"value": 0}, [1, 2])", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{
      filled(s.m, s.n * 2, [&](int64_t m, int64_t j) { return in[0][at(m * s.n + j % s.n)]; })};
  };
  check_case(bench, one);
  one.outputs = {"float32 M N"};
  one.nodes = node_json("flip", R"({"value": 0}, [1])", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{
      filled(s.m, s.n, [&](int64_t m, int64_t j) { return in[0][at(m * s.n + s.n - 1 - j)]; })};
  };
  check_case(bench, one);
  one.nodes = node_json("roll", R"({"value": 0}, [-2], [1])", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{
      filled(s.m, s.n, [&](int64_t m, int64_t j) { return in[0][at(m * s.n + (j + 2) % s.n)]; })};
  };
  check_case(bench, one);
}

TEST_CASE("gather, embedding and advanced indexing read where an integer tensor says") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M N", "int64 M K"};
  one.outputs = {"float32 M K"};
  one.below = {0, 9};
  one.nodes = node_json("gather", R"({"value": 0}, 1, {"value": 1})", "2");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.k, [&](int64_t m, int64_t k) {
      return in[0][at(m * s.n) + static_cast<size_t>(in[1][at(m * s.k + k)])];
    })};
  };
  check_case(bench, one);
  one.inputs = {"bfloat16 9 N", "int32 M"};
  one.outputs = {"bfloat16 M N"};
  one.below = {50, 9};
  one.nodes = node_json("embedding", R"({"value": 0}, {"value": 1})", "2");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.n, [&](int64_t m, int64_t n) {
      return in[0][static_cast<size_t>(in[1][at(m)]) * at(s.n) + at(n)];
    })};
  };
  check_case(bench, one);
  one.inputs = {"float32 M 9", "int64 K"};
  one.outputs = {"float32 M K"};
  one.below = {0, 9};
  one.nodes = node_json("index", R"({"value": 0}, {"values": [1]})", "2", R"("first_dim": 1)");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(s.m, s.k,
      [&](int64_t m, int64_t k) { return in[0][at(m * 9) + static_cast<size_t>(in[1][at(k)])]; })};
  };
  check_case(bench, one);
}

TEST_CASE("scattered elements that meet are summed, or the last one stays") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M 5", "int64 M K", "float32 M K"};
  one.outputs = {"float32 M 5"};
  one.below = {0, 5};
  const auto reference = [](bool adds) {
    return [adds](const tensors& in, const case_sizes& s) {
      tensor out = in[0];
      for (int64_t i = 0; i < s.m * s.k; ++i) {
        float& to = out[at(i / s.k * 5) + static_cast<size_t>(in[1][at(i)])];
        to = adds ? to + in[2][at(i)] : in[2][at(i)];
      }
      return tensors{out};
    };
  };
  one.nodes = node_json("scatter_add", R"({"value": 0}, 1, {"value": 1}, {"value": 2})", "3");
  one.expected = reference(true);
  check_case(bench, one);
  one.nodes = node_json("scatter", R"({"value": 0}, 1, {"value": 1}, {"value": 2})", "3");
  one.expected = reference(false);
  check_case(bench, one);
  one.inputs = {"float32 9 N", "int64 K", "float32 K N"};
  one.outputs = {"float32 9 N"};
  one.below = {0, 9};
  one.nodes = node_json("index_put", R"({"value": 0}, {"values": [1]}, {"value": 2}, true)", "3");
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out = in[0];
    for (int64_t i = 0; i < s.k * s.n; ++i)
      out[static_cast<size_t>(in[1][at(i / s.n)]) * at(s.n) + at(i % s.n)] += in[2][at(i)];
    return tensors{out};
  };
  check_case(bench, one);
}

TEST_CASE("tensors that are made from nothing follow the axes") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M"};
  one.outputs = {"int64 N"};
  one.nodes = node_json("arange", R"({"integer": 7, "varies": true})", "1");
  one.expected = [](const tensors&, const case_sizes& s) {
    return tensors{filled(1, s.n, [](int64_t, int64_t j) { return static_cast<float>(j); })};
  };
  check_case(bench, one);
  one.inputs = {"float32 M N"};
  one.outputs = {"float32 M N"};
  one.nodes = node_json("tril", R"({"value": 0}, -1)", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(
      s.m, s.n, [&](int64_t m, int64_t n) { return n - m <= -1 ? in[0][at(m * s.n + n)] : 0.0f; })};
  };
  check_case(bench, one);
}

TEST_CASE("nearest and bilinear resizing") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M 1 N 4"};
  one.outputs = {"float32 M 1 P 8"};
  one.expressions = {"P = N * 2"};
  one.nodes = node_json("upsample_nearest2d", R"({"value": 0}, [14, 8], 2.0, 2.0)", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{filled(
      s.m * s.n * 2, 8, [&](int64_t row, int64_t x) { return in[0][at(row / 2 * 4 + x / 2)]; })};
  };
  check_case(bench, one);
  one.nodes = node_json("upsample_bilinear2d", R"({"value": 0}, [14, 8], false, 2.0, 2.0)", "1");
  one.expected = [](const tensors& in, const case_sizes& s) {
    const auto place = [](int64_t to, int64_t size) {
      const double from = std::max((static_cast<double>(to) + 0.5) / 2 - 0.5, 0.0);
      const auto low = std::min(static_cast<int64_t>(from), size - 1);
      return std::make_tuple(low, std::min(low + 1, size - 1), from - static_cast<double>(low));
    };
    return tensors{filled(s.m * s.n * 2, 8, [&](int64_t row, int64_t x) {
      const int64_t m = row / (2 * s.n);
      const auto [y0, y1, wy] = place(row % (2 * s.n), s.n);
      const auto [x0, x1, wx] = place(x, 4);
      const auto pixel = [&](int64_t py, int64_t px) {
        return static_cast<double>(in[0][at((m * s.n + py) * 4 + px)]);
      };
      return static_cast<float>((1 - wy) * ((1 - wx) * pixel(y0, x0) + wx * pixel(y0, x1))
        + wy * ((1 - wx) * pixel(y1, x0) + wx * pixel(y1, x1)));
    })};
  };
  check_case(bench, one);
}
