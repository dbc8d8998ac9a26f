#include "kernels/baseline.hpp"
#include "kernels/fusion.hpp"
#include "kernels/template_space.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/mock_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <numbers>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// What a problem of the corpus should give, in double, written down independently of its graph.
using reference = std::function<tensor(
  const std::vector<tensor>& inputs, const std::vector<double>& scalars, size_t cols)>;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

tensor mapped(const tensor& x, const std::function<double(double)>& f) {
  tensor y;
  for (float value : x)
    y.push_back(static_cast<float>(f(static_cast<double>(value))));
  return y;
}

/// Applies a function to each row, which is handed as doubles.
tensor by_row(
  const tensor& x, size_t cols, const std::function<void(std::vector<double>& row)>& f) {
  tensor y;
  for (size_t start = 0; start < x.size(); start += cols) {
    std::vector<double> row(x.begin() + static_cast<std::ptrdiff_t>(start),
      x.begin() + static_cast<std::ptrdiff_t>(start + cols));
    f(row);
    for (double value : row)
      y.push_back(static_cast<float>(value));
  }
  return y;
}

tensor gated(const std::vector<tensor>& in, const std::vector<double>&, size_t cols) {
  tensor y;
  for (size_t row = 0; row < in[0].size() / (2 * cols); ++row) {
    for (size_t i = 0; i < cols; ++i) {
      const double gate = in[0][row * 2 * cols + i];
      y.push_back(static_cast<float>(gate * sigmoid(gate) * in[0][row * 2 * cols + cols + i]));
    }
  }
  return y;
}

tensor rms(const std::vector<tensor>& in, double eps, size_t cols) {
  return by_row(in[0], cols, [&](std::vector<double>& row) {
    double sum = 0;
    for (double x : row)
      sum += x * x;
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(cols) + eps);
    for (size_t i = 0; i < cols; ++i)
      row[i] *= inverse * static_cast<double>(in[1][i]);
  });
}

tensor softmax(const std::vector<tensor>& in, const std::vector<double>&, size_t cols) {
  return by_row(in[0], cols, [](std::vector<double>& row) {
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row)
      sum += x = std::exp(x - top);
    for (double& x : row)
      x /= sum;
  });
}

tensor layer_norm(const std::vector<tensor>& in, const std::vector<double>& scalars, size_t cols) {
  return by_row(in[0], cols, [&](std::vector<double>& row) {
    double mean = 0;
    for (double x : row)
      mean += x / static_cast<double>(cols);
    double variance = 0;
    for (double x : row)
      variance += (x - mean) * (x - mean) / static_cast<double>(cols);
    for (size_t i = 0; i < cols; ++i)
      row[i] = (row[i] - mean) / std::sqrt(variance + scalars[0]) * static_cast<double>(in[1][i])
        + static_cast<double>(in[2][i]);
  });
}

const std::map<std::string, reference>& references() {
  static const std::map<std::string, reference> table = {
    {"silu_and_mul", gated},
    {"silu_and_mul_bf16", gated},
    {"softmax", softmax},
    {"l1n23_softmax", softmax},
    {"l1n40_layernorm", layer_norm},
    {"rmsnorm",
      [](const auto& in, const auto&, size_t cols) {
        return rms(in, cols == 4096 ? 1e-5 : 1e-6, cols);
      }},
    {"gpumode_sigmoid",
      [](const auto& in, const auto& s, size_t) {
        return mapped(in[0], [&](double x) { return sigmoid(s[0] * x) * s[1]; });
      }},
    {"gpumode_tanh",
      [](const auto& in, const auto& s, size_t) {
        return mapped(in[0], [&](double x) { return std::tanh(s[0] * x) * s[1]; });
      }},
    {"gpumode_gelu_4d",
      [](const auto& in, const auto&, size_t) {
        return mapped(in[0], [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
      }},
  };
  return table;
}

/// A bias for each channel of [B, C, H, W], then a leaky ReLU, then a factor.
tensor leaky(
  const std::vector<tensor>& in, const std::vector<double>& s, size_t channels, size_t plane) {
  tensor y;
  for (size_t i = 0; i < in[0].size(); ++i) {
    const double x =
      static_cast<double>(in[0][i]) + static_cast<double>(in[1][i / plane % channels]);
    y.push_back(static_cast<float>((x > 0 ? x : x * s[0]) * s[1]));
  }
  return y;
}

tensor expected(const problem& target, const workload& work, const std::vector<tensor>& inputs) {
  std::vector<double> scalars;
  for (const auto& spec : target.def.inputs) {
    if (spec.is_scalar)
      scalars.push_back(make_scalar(spec.type, work.find_input(spec.name)->value)->number);
  }
  const auto axes = *resolve_axes(target.def, work.axes);
  const auto shape = *resolve_shape(target.def.outputs[0], axes);
  if (target.name == "gpumode_fused_leaky_relu")
    return leaky(
      inputs, scalars, static_cast<size_t>(shape[1]), static_cast<size_t>(shape[2] * shape[3]));
  return references().at(target.name)(inputs, scalars, static_cast<size_t>(shape.back()));
}

/// The same workload with rows cut to a few: the code is the same, the interpreter slow.
workload shortened(const problem& target, workload work) {
  for (auto& [name, value] : work.axes) {
    if (name == target.def.axes[0].name)
      value = std::min<int64_t>(value, 5);
  }
  return work;
}

/// Largest error in units of what the problem allows: 1.25e-5 for float32, 1 % for 16 bits.
double worst_error(const tensor& x, const tensor& y, dtype type) {
  const double allowed = type == dtype::float32 ? 1.25e-5 : 0.01;
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    const double ratio = error / (allowed + allowed * std::abs(static_cast<double>(y[i])));
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

void check_kernel(mock_bench& bench, const graph_problem& one, const generated_kernel& kernel,
  const workload& work) {
  const auto inputs = drawn_inputs(one.target, work);
  const auto got = bench.outputs(kernel, one.target, work, inputs);
  const auto wanted = expected(one.target, work, inputs);
  REQUIRE(got.size() == 1);
  REQUIRE(got[0].size() == wanted.size());
  CHECK(worst_error(got[0], wanted, one.target.def.outputs[0].type) <= 1);
}

/// The two workloads that differ most: the last built-in ones and the odd ones of the shared
/// problems.
std::vector<workload> checked_workloads(const problem& target) {
  std::vector<workload> list;
  for (const workload& work : target.workloads) {
    auto small = shortened(target, work);
    const auto axes = *resolve_axes(target.def, small.axes);
    const auto elements = *element_count(*resolve_shape(target.def.outputs[0], axes));
    if (elements <= 70'000)
      list.push_back(std::move(small));
  }
  if (list.size() > 3)
    list.erase(list.begin() + 1, list.end() - 2);
  return list;
}

} // namespace

TEST_CASE("first points and plain kernels of the corpus compute what the reference says") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const auto& one : whole_corpus()) {
    CAPTURE(one.target.name);
    const auto kernel = fuse(one.graph, one.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE(facts);
    const auto point = first_point(feasible_points(*facts), *facts);
    CAPTURE(key_of(point));
    const auto plain = plain_baseline(one.graph, one.target.def);
    REQUIRE(plain);
    const auto works = checked_workloads(one.target);
    REQUIRE_FALSE(works.empty());
    for (const workload& work : works) {
      CAPTURE(work.uuid);
      check_kernel(bench, one, kernel_at(*kernel, one.target.def, point), work);
    }
    check_kernel(bench, one, {plain->source, plain->plan}, works.back());
  }
}

TEST_CASE("a sample of each built-in's space computes what the reference says") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto kernel = fuse(one.graph, one.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE(facts);
    const auto points = feasible_points(*facts);
    const auto works = checked_workloads(one.target);
    // A stride that is prime to the space's periods visits all values of all parameters.
    for (size_t i = 3; i < points.size(); i += 31) {
      CAPTURE(key_of(points[i]));
      check_kernel(
        bench, one, kernel_at(*kernel, one.target.def, points[i]), works[i % works.size()]);
    }
  }
}

TEST_CASE(
  "the fast form of gelu is exact to the rounding of a 16-bit output, and plain is as ever") {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE(source != nullptr);
  auto target = load_problem(std::filesystem::path(source) / "examples/h200/gelu_bias");
  REQUIRE_MESSAGE(target, (target ? "" : target.error().what));
  target->workloads.resize(1);
  target->workloads[0].axes = {{"rows", 16}, {"width", 512}};
  const auto graph = parse_op_graph(target->graph_json);
  REQUIRE(graph);
  const auto kernel = fuse(*graph, target->def);
  REQUIRE(kernel);
  const auto facts = facts_of(*kernel, *target);
  REQUIRE(facts);
  auto point = first_point(feasible_points(*facts), *facts);
  CHECK(point.fast); // What is promising is tried first.
  point.fast = false;
  CHECK(kernel_at(*kernel, target->def, point).source.find("tanhf") != std::string::npos);
  point.fast = true;
  CHECK(is_feasible(point, *facts));
  const auto fast = kernel_at(*kernel, target->def, point);
  CHECK(fast.source.find("tanhf") == std::string::npos);
  mock_bench bench;
  if (!bench.is_ready())
    return;
  auto inputs = drawn_inputs(*target, target->workloads[0]);
  // Far into both tails; still numbers of 16 bits.
  for (float& x : inputs[0])
    x *= 4;
  inputs[0][0] = 0x1p100F;
  inputs[0][1] = -65536;
  inputs[0][2] = -256;
  const auto got = bench.outputs(fast, *target, target->workloads[0], inputs);
  for (size_t i = 0; i < got[0].size(); ++i) {
    const double x = double(inputs[0][i]) + double(inputs[1][i % 512]);
    const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    const double wanted = x / (1 + std::exp(-2 * u));
    CAPTURE(x);
    REQUIRE(std::isfinite(got[0][i]));
    CHECK(std::abs(double(got[0][i]) - wanted) <= std::abs(wanted) / 250 + 1e-30);
  }
}

TEST_CASE("the first points of the built-in problems reach 0.6 of the modelled floor") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const auto& one : builtin_corpus()) {
    CAPTURE(one.target.name);
    const auto kernel = fuse(one.graph, one.target.def);
    REQUIRE(kernel);
    const auto facts = facts_of(*kernel, one.target);
    REQUIRE(facts);
    const auto point = first_point(feasible_points(*facts), *facts);
    CAPTURE(key_of(point));
    const auto& work = one.target.workloads[0];
    uint64_t bytes = 0;
    for (const auto* list : {&one.target.def.inputs, &one.target.def.outputs}) {
      for (const auto& spec : *list)
        bytes +=
          *storage_bytes(spec.type, *resolve_shape(spec, *resolve_axes(one.target.def, work.axes)));
    }
    const auto time = bench.time(kernel_at(*kernel, one.target.def, point), one.target, work);
    // 4.3 TB/s is what the profile says memory gives.
    const double floor_ns = static_cast<double>(bytes) / 4300;
    const double share = floor_ns / static_cast<double>(time.ns);
    MESSAGE(one.target.name << " " << key_of(point) << ": " << time.ns << " ns MODELLED, bound "
                            << time.bound << ", share of the floor " << share);
    CHECK(share >= 0.6);
  }
}
