#include "tests/kernels/naive/naive_case.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

using tensors = std::vector<tensor>;

size_t at(int64_t number) {
  return static_cast<size_t>(number);
}

/// a [rows, terms] times b [terms, columns], from a place on in each.
tensor product(const tensor& a, size_t a_first, const tensor& b, size_t b_first, int64_t rows,
  int64_t terms, int64_t columns) {
  tensor out;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double total = 0;
      for (int64_t k = 0; k < terms; ++k)
        total += static_cast<double>(a[a_first + at(i * terms + k)])
          * static_cast<double>(b[b_first + at(k * columns + j)]);
      out.push_back(static_cast<float>(total));
    }
  }
  return out;
}

/// A convolution as its definition has it: padding 1, stride 2, two groups of two channels that
/// become three.
tensor grouped_convolution(const tensors& in, const case_sizes& s) {
  const int64_t height = s.n;
  const int64_t out_height = (height - 1) / 2 + 1;
  tensor out;
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t o = 0; o < 6; ++o) {
      for (int64_t y = 0; y < out_height; ++y) {
        for (int64_t x = 0; x < 4; ++x) {
          double total = static_cast<double>(in[2][at(o)]);
          for (int64_t c = 0; c < 2; ++c) {
            for (int64_t dy = 0; dy < 3; ++dy) {
              for (int64_t dx = 0; dx < 3; ++dx) {
                const int64_t from_y = 2 * y + dy - 1;
                const int64_t from_x = 2 * x + dx - 1;
                if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= 8)
                  continue;
                const int64_t channel = o / 3 * 2 + c;
                total +=
                  static_cast<double>(in[0][at(((m * 4 + channel) * height + from_y) * 8 + from_x)])
                  * static_cast<double>(in[1][at(((o * 2 + c) * 3 + dy) * 3 + dx)]);
              }
            }
          }
          out.push_back(static_cast<float>(total));
        }
      }
    }
  }
  return out;
}

} // namespace

TEST_CASE("a matrix product reads its operands through views of any kind") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("mm", R"({"value": 0}, {"value": 1})", "2");
  one.inputs = {"float32 M N", "float32 N K"};
  one.outputs = {"float32 M K"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{product(in[0], 0, in[1], 0, s.m, s.n, s.k)};
  };
  check_case(bench, one);
  one.inputs = {"bfloat16 M N", "bfloat16 N K"};
  one.outputs = {"bfloat16 M K"};
  one.below = {5, 5};
  check_case(bench, one);
  one.inputs = {"int64 M N", "int64 N K"};
  one.outputs = {"int64 M K"};
  check_case(bench, one);
  // [M, K] @ [N, K]^T, the result seen the other way round.
  one.nodes = node_json("t", R"({"value": 1})", "2") + ", "
    + node_json("mm", R"({"value": 0}, {"value": 2})", "3") + ", "
    + node_json("t", R"({"value": 3})", "4");
  one.inputs = {"float32 M K", "float32 N K"};
  one.middle = {"float32 K N", "float32 M N"};
  one.outputs = {"float32 N M"};
  one.below = {};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out;
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t m = 0; m < s.m; ++m) {
        double total = 0;
        for (int64_t k = 0; k < s.k; ++k)
          total += static_cast<double>(in[0][at(m * s.k + k)])
            * static_cast<double>(in[1][at(n * s.k + k)]);
        out.push_back(static_cast<float>(total));
      }
    }
    return tensors{out};
  };
  check_case(bench, one);
}

TEST_CASE("addmm scales both terms, and bmm takes each batch by itself") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json(
    "addmm", R"({"value": 0}, {"value": 1}, {"value": 2})", "3", R"("beta": 0.5, "alpha": 2)");
  one.inputs = {"float32 K", "float32 M N", "float32 N K"};
  one.outputs = {"float32 M K"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out = product(in[1], 0, in[2], 0, s.m, s.n, s.k);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = 2 * out[i] + 0.5f * in[0][i % at(s.k)];
    return tensors{out};
  };
  check_case(bench, one);
  one.nodes = node_json("bmm", R"({"value": 0}, {"value": 1})", "2");
  one.inputs = {"float32 M N K", "float32 M K 4"};
  one.outputs = {"float32 M N 4"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out;
    for (int64_t m = 0; m < s.m; ++m) {
      const tensor part = product(in[0], at(m * s.n * s.k), in[1], at(m * s.k * 4), s.n, s.k, 4);
      out.insert(out.end(), part.begin(), part.end());
    }
    return tensors{out};
  };
  check_case(bench, one);
}

TEST_CASE("a convolution pads, strides and keeps its groups apart") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("convolution",
    R"({"value": 0}, {"value": 1}, {"value": 2}, [2, 2], [1, 1], [1, 1], false, [0, 0], 2)", "3");
  one.inputs = {"float32 M 4 N 8", "float32 6 2 3 3", "float32 6"};
  one.outputs = {"float32 M 6 P 4"};
  one.expressions = {"P = (N - 1) // 2 + 1"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    return tensors{grouped_convolution(in, s)};
  };
  check_case(bench, one);
}

TEST_CASE("a transposed convolution spreads each input element") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json(
    "convolution", R"({"value": 0}, {"value": 1}, null, [2], [1], [1], true, [0], 1)", "2");
  one.inputs = {"float32 M 3 N", "float32 3 2 4"};
  one.outputs = {"float32 M 2 P"};
  one.expressions = {"P = N * 2"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    std::vector<double> out(at(s.m * 2 * s.n * 2));
    for (int64_t m = 0; m < s.m; ++m) {
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t n = 0; n < s.n; ++n) {
          for (int64_t o = 0; o < 2; ++o) {
            for (int64_t k = 0; k < 4; ++k) {
              const int64_t to = 2 * n + k - 1;
              if (to >= 0 && to < 2 * s.n)
                out[at((m * 2 + o) * 2 * s.n + to)] +=
                  static_cast<double>(in[0][at((m * 3 + c) * s.n + n)])
                  * static_cast<double>(in[1][at((c * 2 + o) * 4 + k)]);
            }
          }
        }
      }
    }
    return tensors{tensor(out.begin(), out.end())};
  };
  check_case(bench, one);
}

TEST_CASE("max pooling gives values and places, average pooling counts its padding or not") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M N 8"};
  one.nodes =
    node_json("max_pool2d_with_indices", R"({"value": 0}, [3, 3], [2, 2], [1, 1], [1, 1])", "1, 2");
  one.outputs = {"float32 M P 4", "int64 M P 4"};
  one.expressions = {"P = (N - 1) // 2 + 1"};
  const auto pooled = [](const tensors& in, const case_sizes& s, const auto& window) {
    for (int64_t m = 0; m < s.m; ++m) {
      for (int64_t y = 0; y < (s.n - 1) / 2 + 1; ++y) {
        for (int64_t x = 0; x < 4; ++x) {
          std::vector<std::pair<double, int64_t>> found;
          for (int64_t from_y = 2 * y - 1; from_y < 2 * y + 2; ++from_y) {
            for (int64_t from_x = 2 * x - 1; from_x < 2 * x + 2; ++from_x) {
              if (from_y >= 0 && from_y < s.n && from_x >= 0 && from_x < 8)
                found.emplace_back(static_cast<double>(in[0][at((m * s.n + from_y) * 8 + from_x)]),
                  from_y * 8 + from_x);
            }
          }
          window(found);
        }
      }
    }
  };
  using window_elements = std::vector<std::pair<double, int64_t>>;
  one.expected = [&](const tensors& in, const case_sizes& s) {
    tensors out(2);
    pooled(in, s, [&](const window_elements& found) {
      auto best = found.front();
      for (const auto& each : found) {
        if (each.first > best.first)
          best = each;
      }
      out[0].push_back(static_cast<float>(best.first));
      out[1].push_back(static_cast<float>(best.second));
    });
    return out;
  };
  check_case(bench, one);
  one.nodes =
    node_json("avg_pool2d", R"({"value": 0}, [3, 3], [2, 2], [1, 1], false, false, null)", "1");
  one.outputs = {"float32 M P 4"};
  one.expected = [&](const tensors& in, const case_sizes& s) {
    tensor out;
    pooled(in, s, [&](const window_elements& found) {
      double total = 0;
      for (const auto& each : found)
        total += each.first;
      out.push_back(static_cast<float>(total / static_cast<double>(found.size())));
    });
    return tensors{out};
  };
  check_case(bench, one);
}
