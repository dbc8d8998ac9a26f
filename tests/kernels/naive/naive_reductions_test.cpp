#include "tests/kernels/naive/naive_case.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <numeric>

using namespace gristmill;
using namespace gristmill::test;

namespace {

using row = std::vector<double>;
using tensors = std::vector<tensor>;

size_t at(int64_t number) {
  return static_cast<size_t>(number);
}

/// The middle dimension of [M, N, K] as rows, in order of the others.
std::vector<row> middle_rows(const tensor& x, const case_sizes& s) {
  std::vector<row> rows;
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t k = 0; k < s.k; ++k) {
      row one;
      for (int64_t n = 0; n < s.n; ++n)
        one.push_back(static_cast<double>(x[at((m * s.n + n) * s.k + k)]));
      rows.push_back(std::move(one));
    }
  }
  return rows;
}

/// Rows of the middle dimension back as [M, N, K].
tensor from_middle_rows(const std::vector<row>& rows, const case_sizes& s) {
  tensor out(at(s.m * s.n * s.k));
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t n = 0; n < s.n; ++n)
        out[at((m * s.n + n) * s.k + k)] = static_cast<float>(rows[at(m * s.k + k)][at(n)]);
    }
  }
  return out;
}

double sum(const row& x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}

double mean(const row& x) {
  return sum(x) / static_cast<double>(x.size());
}

double variance(const row& x, double correction) {
  double total = 0;
  for (double value : x)
    total += (value - mean(x)) * (value - mean(x));
  return total / (static_cast<double>(x.size()) - correction);
}

struct reduction_row {
  const char* op;
  double (*f)(const row&);
  const char* arguments = R"({"value": 0}, [-2])";
  const char* attrs = "";
};

constexpr reduction_row reduction_rows[] = {
  {"sum", sum},
  {"mean", mean},
  {"amax", [](const row& x) { return *std::max_element(x.begin(), x.end()); }},
  {"prod",
    [](const row& x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>{}); },
    R"({"value": 0}, 1)"},
  {"var", [](const row& x) { return variance(x, 0); }, R"({"value": 0}, [1])",
    R"("correction": 0)"},
  {"std", [](const row& x) { return std::sqrt(variance(x, 1)); }, R"({"value": 0}, [1], true)"},
  {"logsumexp",
    [](const row& x) {
      double total = 0;
      for (double value : x)
        total += std::exp(value);
      return std::log(total);
    }},
  {"linalg_vector_norm",
    [](const row& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); },
    R"({"value": 0}, 2, [1])"},
  {"argmin",
    [](const row& x) {
      return static_cast<double>(std::min_element(x.begin(), x.end()) - x.begin());
    },
    R"({"value": 0}, 1)"},
};

naive_case row_case(const std::string& nodes, const std::function<std::vector<row>(const row&)>& f,
  std::vector<std::string> outputs) {
  naive_case one;
  one.nodes = nodes;
  one.inputs = {"float32 M N K"};
  one.outputs = std::move(outputs);
  one.expected = [f](const tensors& in, const case_sizes& sizes) {
    std::vector<std::vector<row>> results;
    for (const row& x : middle_rows(in[0], sizes)) {
      const auto made = f(x);
      results.resize(made.size());
      for (size_t i = 0; i < made.size(); ++i)
        results[i].push_back(made[i]);
    }
    tensors out;
    for (const auto& rows : results) {
      if (rows[0].size() == at(sizes.n)) {
        out.push_back(from_middle_rows(rows, sizes));
        continue;
      }
      tensor flat;
      for (const row& x : rows)
        flat.push_back(static_cast<float>(x[0]));
      out.push_back(std::move(flat));
    }
    return out;
  };
  return one;
}

} // namespace

TEST_CASE("a reduction over a middle dimension is right with and without that dimension kept") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const reduction_row& reduced : reduction_rows) {
    const std::string type = std::string{reduced.op} == "argmin" ? "int64" : "float32";
    const auto f = [&](const row& x) { return std::vector<row>{{reduced.f(x)}}; };
    check_case(bench,
      row_case(node_json(reduced.op, reduced.arguments, "1", reduced.attrs), f, {type + " M K"}));
  }
  check_case(bench,
    row_case(node_json("sum", R"({"value": 0}, [1], true)", "1"),
      [](const row& x) { return std::vector<row>{{sum(x)}}; }, {"float32 M 1 K"}));
}

TEST_CASE("max gives values and the place of the first of equals") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one = row_case(node_json("max", R"({"value": 0}, 1, true)", "1, 2"),
    [](const row& x) {
      const auto top = std::max_element(x.begin(), x.end());
      return std::vector<row>{{*top}, {static_cast<double>(top - x.begin())}};
    },
    {"float32 M 1 K", "int64 M 1 K"});
  one.below = {3};
  check_case(bench, one);
}

TEST_CASE("a sum of everything, of integers, and over several dimensions") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("sum", R"({"value": 0})", "1");
  one.inputs = {"int32 M N"};
  one.outputs = {"int64"};
  one.below = {100};
  one.expected = [](const tensors& in, const case_sizes&) {
    return tensors{{std::accumulate(in[0].begin(), in[0].end(), 0.0f)}};
  };
  check_case(bench, one);
  one.nodes = node_json("mean", R"({"value": 0}, [0, -1])", "1");
  one.inputs = {"float32 M N K"};
  one.outputs = {"float32 N"};
  one.below = {};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out;
    for (int64_t n = 0; n < s.n; ++n) {
      double total = 0;
      for (int64_t m = 0; m < s.m; ++m) {
        for (int64_t k = 0; k < s.k; ++k)
          total += static_cast<double>(in[0][at((m * s.n + n) * s.k + k)]);
      }
      out.push_back(static_cast<float>(total / static_cast<double>(s.m * s.k)));
    }
    return tensors{out};
  };
  check_case(bench, one);
}

TEST_CASE("softmax and its logarithm along a middle dimension, and softmax's backward") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  const auto softmax = [](const row& x) {
    row out;
    double total = 0;
    for (double value : x)
      total += std::exp(value);
    for (double value : x)
      out.push_back(std::exp(value) / total);
    return out;
  };
  check_case(bench,
    row_case(node_json("_softmax", R"({"value": 0}, 1, false)", "1"),
      [&](const row& x) { return std::vector<row>{softmax(x)}; }, {"float32 M N K"}));
  check_case(bench,
    row_case(node_json("_log_softmax", R"({"value": 0}, -2, false)", "1"),
      [&](const row& x) {
        row out = softmax(x);
        for (double& value : out)
          value = std::log(value);
        return std::vector<row>{out};
      },
      {"float32 M N K"}));
  naive_case one;
  one.nodes =
    node_json("_softmax_backward_data", R"({"value": 0}, {"value": 1}, 1, "float32")", "2");
  one.inputs = {"float32 M N K", "float32 M N K"};
  one.outputs = {"float32 M N K"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    auto grads = middle_rows(in[0], s);
    const auto outs = middle_rows(in[1], s);
    for (size_t r = 0; r < grads.size(); ++r) {
      const double total =
        std::inner_product(grads[r].begin(), grads[r].end(), outs[r].begin(), 0.0);
      for (size_t i = 0; i < grads[r].size(); ++i)
        grads[r][i] = outs[r][i] * (grads[r][i] - total);
    }
    return tensors{from_middle_rows(grads, s)};
  };
  check_case(bench, one);
}

TEST_CASE("layer norm gives the rows, their means and scales") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes =
    node_json("native_layer_norm", R"({"value": 0}, [7], {"value": 1}, null, 0.5)", "2, 3, 4");
  one.inputs = {"float32 M K N", "float32 N"};
  one.outputs = {"float32 M K N", "float32 M K 1", "float32 M K 1"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensors out(3);
    for (size_t r = 0; r < at(s.m * s.k); ++r) {
      const row x(in[0].begin() + static_cast<std::ptrdiff_t>(r * at(s.n)),
        in[0].begin() + static_cast<std::ptrdiff_t>((r + 1) * at(s.n)));
      const double scale = 1 / std::sqrt(variance(x, 0) + 0.5);
      for (size_t i = 0; i < x.size(); ++i)
        out[0].push_back(
          static_cast<float>((x[i] - mean(x)) * scale * static_cast<double>(in[1][i])));
      out[1].push_back(static_cast<float>(mean(x)));
      out[2].push_back(static_cast<float>(scale));
    }
    return out;
  };
  check_case(bench, one);
}

TEST_CASE("group norm normalises neighbouring channels together") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M 6 N", "float32 6", "float32 6"};
  one.outputs = {"float32 M 6 N"};
  one.nodes = node_json("native_group_norm",
    R"({"value": 0}, {"value": 1}, {"value": 2}, 5, 6, 7, 2, 0.25)", "5, 3, 4");
  one.middle = {"float32 M 2", "float32 M 2"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensor out(in[0].size());
    for (int64_t m = 0; m < s.m; ++m) {
      for (int64_t group = 0; group < 2; ++group) {
        const size_t first = at((m * 6 + group * 3) * s.n);
        const row x(in[0].begin() + static_cast<std::ptrdiff_t>(first),
          in[0].begin() + static_cast<std::ptrdiff_t>(first + at(3 * s.n)));
        for (size_t i = 0; i < x.size(); ++i) {
          const size_t channel = at(group * 3) + i / at(s.n);
          out[first + i] = static_cast<float>((x[i] - mean(x)) / std::sqrt(variance(x, 0) + 0.25)
              * static_cast<double>(in[1][channel])
            + static_cast<double>(in[2][channel]));
        }
      }
    }
    return tensors{out};
  };
  check_case(bench, one);
}

TEST_CASE("batch norm uses the statistics of the batch or those that are given") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.inputs = {"float32 M N K", "float32 N", "float32 N"};
  one.outputs = {"float32 M N K"};
  one.middle = {"float32 N", "float32 N"};
  one.below = {0, 0, 9};
  const auto reference = [](bool uses_batch) {
    return [uses_batch](const tensors& in, const case_sizes& s) {
      tensor out(in[0].size());
      for (int64_t n = 0; n < s.n; ++n) {
        row x;
        const auto place = [&](int64_t i) { return at((i / s.k * s.n + n) * s.k + i % s.k); };
        for (int64_t i = 0; i < s.m * s.k; ++i)
          x.push_back(static_cast<double>(in[0][place(i)]));
        const double middle = uses_batch ? mean(x) : static_cast<double>(in[1][at(n)]);
        const double spread = uses_batch ? variance(x, 0) : static_cast<double>(in[2][at(n)]);
        for (int64_t i = 0; i < s.m * s.k; ++i)
          out[place(i)] = static_cast<float>((x[at(i)] - middle) / std::sqrt(spread + 0.5));
      }
      return tensors{out};
    };
  };
  one.nodes = node_json("native_batch_norm",
    R"({"value": 0}, null, null, {"value": 1}, {"value": 2}, false, 0.1, 0.5)", "5, 3, 4");
  one.expected = reference(false);
  check_case(bench, one);
  one.nodes = node_json(
    "native_batch_norm", R"({"value": 0}, null, null, null, null, true, 0.1, 0.5)", "5, 3, 4");
  one.expected = reference(true);
  check_case(bench, one);
}

TEST_CASE("cumulative sums, and a stable sort with places") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  check_case(bench,
    row_case(node_json("cumsum", R"({"value": 0}, 1)", "1"),
      [](const row& x) {
        row out(x.size());
        std::partial_sum(x.begin(), x.end(), out.begin());
        return std::vector<row>{out};
      },
      {"float32 M N K"}));
  naive_case one = row_case(node_json("sort", R"({"value": 0}, 1, true)", "1, 2"),
    [](const row& x) {
      row places(x.size());
      std::iota(places.begin(), places.end(), 0.0);
      std::stable_sort(places.begin(), places.end(),
        [&](double a, double b) { return x[static_cast<size_t>(a)] > x[static_cast<size_t>(b)]; });
      row values;
      for (double place : places)
        values.push_back(x[static_cast<size_t>(place)]);
      return std::vector<row>{values, places};
    },
    {"float32 M N K", "int64 M N K"});
  one.below = {5};
  check_case(bench, one);
}

TEST_CASE("top-k gives the largest in order") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  naive_case one;
  one.nodes = node_json("topk", R"({"value": 0}, 3, -1, true, true)", "1, 2");
  one.inputs = {"float32 M N"};
  one.outputs = {"float32 M 3", "int64 M 3"};
  one.expected = [](const tensors& in, const case_sizes& s) {
    tensors out(2);
    for (int64_t m = 0; m < s.m; ++m) {
      const float* x = in[0].data() + m * s.n;
      std::vector<size_t> places(at(s.n));
      std::iota(places.begin(), places.end(), size_t{0});
      std::stable_sort(
        places.begin(), places.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
      for (size_t i = 0; i < 3; ++i) {
        out[0].push_back(x[places[i]]);
        out[1].push_back(static_cast<float>(places[i]));
      }
    }
    return out;
  };
  check_case(bench, one);
}
