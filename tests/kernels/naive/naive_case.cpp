#include "tests/kernels/naive/naive_case.hpp"

#include "kernels/naive/naive_stage.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

namespace gristmill::test {

namespace {

struct axis_row {
  std::string name;
  int64_t traced;
  int64_t again;
  std::string expression;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

int64_t size_of(const std::string& label, const std::vector<axis_row>& axes, bool again) {
  for (const auto& axis : axes) {
    if (axis.name == label)
      return again ? axis.again : axis.traced;
  }
  return std::stoll(label);
}

std::vector<axis_row> axes_of(const naive_case& one) {
  std::vector<axis_row> axes = {{"M", 5, 11, ""}, {"N", 7, 13, ""}, {"K", 3, 17, ""}};
  for (const std::string& text : one.expressions) {
    const size_t equals = text.find(" = ");
    const std::string formula = text.substr(equals + 3);
    const auto value = [&](bool again) {
      std::vector<std::pair<std::string, int64_t>> known;
      for (const auto& axis : axes)
        known.emplace_back(axis.name, again ? axis.again : axis.traced);
      return *evaluate_axis(formula, known);
    };
    axes.push_back({text.substr(0, equals), value(false), value(true), formula});
  }
  return axes;
}

tensor draw(size_t count, int below, uint32_t& state) {
  tensor numbers;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t high = state >> 8;
    numbers.push_back(below > 0 ? static_cast<float>(high % static_cast<uint32_t>(below))
                                : static_cast<float>(high % 4096) / 1024.0f - 2.0f);
  }
  return numbers;
}

} // namespace

std::string node_json(const std::string& op, const std::string& inputs, const std::string& outputs,
  const std::string& attrs) {
  return fmt::format(R"({{"op": "{}", "inputs": [{}], "outputs": [{}]{}}})", op, inputs, outputs,
    attrs.empty() ? "" : fmt::format(R"(, "attrs": {{{}}})", attrs));
}

graph_problem problem_of(const naive_case& one) {
  const auto axes = axes_of(one);
  std::vector<std::string> axis_texts;
  std::vector<std::string> traced;
  std::vector<std::string> again;
  for (const auto& axis : axes) {
    axis_texts.push_back(axis.expression.empty()
        ? fmt::format(R"("{}": {{"type": "var"}})", axis.name)
        : fmt::format(
          R"("{}": {{"type": "expr", "expression": "{}"}})", axis.name, axis.expression));
    traced.push_back(fmt::format(R"("{}": {})", axis.name, axis.traced));
    again.push_back(fmt::format(R"("{}": {})", axis.name, axis.again));
  }
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> values;
  std::vector<std::string> random;
  std::vector<std::string> names;
  std::vector<size_t> output_ids;
  const auto add = [&](const std::string& text, const std::string& input) {
    const auto words = words_of(text);
    std::vector<std::string> labels;
    std::vector<int64_t> shape;
    std::vector<int64_t> shape_again;
    for (size_t i = 1; i < words.size(); ++i) {
      labels.push_back(fmt::format("\"{}\"", words[i]));
      shape.push_back(size_of(words[i], axes, false));
      shape_again.push_back(size_of(words[i], axes, true));
    }
    values.push_back(fmt::format(R"({{"id": {}, "dtype": "{}", "shape": [{}]{}{}}})", values.size(),
      words[0], fmt::join(shape, ", "),
      shape.empty() ? "" : fmt::format(R"(, "shape_again": [{}])", fmt::join(shape_again, ", ")),
      input.empty() ? "" : fmt::format(R"(, "input": "{}")", input)));
    return fmt::format(R"({{"shape": [{}], "dtype": "{}"}})", fmt::join(labels, ", "), words[0]);
  };
  for (const std::string& text : one.inputs) {
    const std::string name = fmt::format("in_{}", inputs.size());
    names.push_back(name);
    inputs.push_back(fmt::format("\"{}\": {}", name, add(text, name)));
    random.push_back(fmt::format(R"("{}": {{"type": "random"}})", name));
  }
  for (const std::string& text : one.middle)
    add(text, "");
  for (const std::string& text : one.outputs) {
    output_ids.push_back(values.size());
    outputs.push_back(fmt::format("\"out_{}\": {}", outputs.size(), add(text, "")));
  }
  std::string works;
  for (const case_sizes& sizes : checked_sizes())
    works +=
      fmt::format(R"({{"axes": {{"M": {}, "N": {}, "K": {}}}, "inputs": {{{}}}, "uuid": "w{}"}})"
                  "\n",
        sizes.m, sizes.n, sizes.k, fmt::join(random, ", "), sizes.m);
  return make_problem(
    fmt::format(R"({{"name": "made", "axes": {{{}}}, "inputs": {{{}}}, "outputs": {{{}}},
      "reference": "def run({}):\n    return in_0\n"}})",
      fmt::join(axis_texts, ", "), fmt::join(inputs, ", "), fmt::join(outputs, ", "),
      fmt::join(names, ", ")),
    works,
    fmt::format(R"({{"schema": "gristmill.graph/1", "axes": {{{}}}, "axes_again": {{{}}},
      "values": [{}], "nodes": [{}], "outputs": [{}]}})",
      fmt::join(traced, ", "), fmt::join(again, ", "), fmt::join(values, ", "), one.nodes,
      fmt::join(output_ids, ", ")));
}

std::vector<case_sizes> checked_sizes() {
  return {{4, 9, 6}, {1, 40, 2}};
}

stage_space_ptr space_of(const graph_problem& one) {
  auto space = read_naive_stage(one.target, one.graph);
  REQUIRE_MESSAGE(space, (space ? std::string{} : space.error().what));
  return std::move(*space);
}

void check_case(mock_bench& bench, const naive_case& one) {
  CAPTURE(one.nodes);
  const auto made = problem_of(one);
  const auto space = space_of(made);
  const auto kernel = space->generate(space->first());
  CAPTURE(kernel.source);
  uint32_t state = 7;
  for (size_t w = 0; w < made.target.workloads.size(); ++w) {
    const workload& work = made.target.workloads[w];
    CAPTURE(work.uuid);
    const auto axes = resolve_axes(made.target.def, work.axes);
    REQUIRE(axes);
    std::vector<tensor> inputs;
    for (size_t i = 0; i < made.target.def.inputs.size(); ++i) {
      const auto shape = resolve_shape(made.target.def.inputs[i], *axes);
      REQUIRE(shape);
      inputs.push_back(
        draw(*element_count(*shape), i < one.below.size() ? one.below[i] : 0, state));
    }
    const auto got = bench.outputs(kernel, made.target, work, inputs);
    const auto wanted = one.expected(inputs, checked_sizes()[w]);
    REQUIRE(got.size() == wanted.size());
    for (size_t o = 0; o < got.size(); ++o) {
      CAPTURE(o);
      REQUIRE(got[o].size() == wanted[o].size());
      const dtype type = made.target.def.outputs[o].type;
      // A unit in the last place of 16 bits is up to 2^-8 of the value.
      const float allowed = type == dtype::bfloat16 ? 8e-3f
        : type == dtype::float16                    ? 1e-3f
        : is_float(type)                            ? 1e-5f
                                                    : 0.0f;
      size_t misses = 0;
      for (size_t i = 0; i < got[o].size(); ++i) {
        const bool is_same = got[o][i] == wanted[o][i]
          || (std::isnan(got[o][i]) && std::isnan(wanted[o][i]))
          || std::abs(got[o][i] - wanted[o][i]) <= allowed * (1 + std::abs(wanted[o][i]));
        if (!is_same && misses++ == 0)
          MESSAGE("first miss at " << i << ": " << got[o][i] << " instead of " << wanted[o][i]);
      }
      CHECK(misses == 0);
    }
  }
}

} // namespace gristmill::test
