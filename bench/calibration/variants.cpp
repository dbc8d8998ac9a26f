#include "bench/calibration/variants.hpp"

#include "kernels/builtin.hpp"
#include "kernels/lowering/program_space.hpp"
#include "protocol/op_graph.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill::calibration {

namespace {

/// A key as a word that can be a file name: "row/t256/v4" is "row-t256-v4".
std::string as_word(std::string key) {
  for (char& c : key)
    if (c == '/' || c == '+' || c == ':')
      c = '-';
  return key;
}

std::vector<size_t> evenly(size_t points, size_t wanted, size_t first) {
  std::set<size_t> taken{first};
  const size_t count = std::min(points, wanted);
  for (size_t i = 0; i < count && taken.size() < count; ++i)
    taken.insert(i * points / count);
  return {taken.begin(), taken.end()};
}

result<corpus_kernel> bind(const ranked_problem& what, const problem& target,
  const program_space& space, const program_point& point) {
  const auto generated = space.generate(point);
  if (!generated)
    return pass(generated);
  const auto plan = parse_plan(generated->plan);
  if (!plan)
    return pass(plan);
  const auto axes = resolve_axes(target.def, what.axes);
  if (!axes)
    return pass(axes);
  auto bound = resolve(*plan, target.def, *axes, {}, corpus_device());
  if (!bound)
    return pass(bound);
  if (plan->options != plan_options{})
    return fail(errc::unsupported, "its plan has options that the harness's compiler is not given");
  corpus_kernel out;
  out.name = fmt::format("{}.{}", what.name, as_word(space.key(point)));
  out.folder = what.name;
  out.source = generated->source;
  out.options = plan->options;
  const auto lines =
    size_lines("large", *axes, *bound, [](const std::string&) { return std::string("uniform 1"); });
  if (!lines)
    return pass(lines);
  out.lines = fmt::format(
    "kernel {} {} {} {} none 0 0\n{}", out.name, what.name, what.name, what.kind, *lines);
  out.large = std::move(bound);
  return out;
}

} // namespace

const std::vector<ranked_problem>& ranked_problems() {
  static const std::vector<ranked_problem> all = {
    {"gelu_bias", {{"rows", 16384}, {"width", 4096}}, "streaming"},
    {"transpose", {{"rows", 8192}, {"columns", 8192}}, "streaming"},
    {"softmax", {{"rows", 16384}, {"classes", 2048}}, "reduction"},
    {"rmsnorm", {{"tokens", 16384}, {"hidden", 4096}}, "reduction"},
    {"column_sum", {{"rows", 16384}, {"width", 4096}}, "reduction"},
    {"gemm_float32", {{"m", 2048}, {"k", 2048}, {"n", 2048}}, "ffma"},
    {"gemm_bias_gelu", {{"tokens", 4096}, {"inputs", 2048}, {"outputs", 4096}}, "mma"},
    {"cumsum_scan", {{"rows", 4096}, {"length", 8192}}, "reduction"},
    // Timed after mock-clock/3 was frozen.
    {"layernorm", {{"rows", 8192}, {"width", 8192}}, "reduction"},
    {"silu_and_mul", {{"tokens", 8192}, {"width", 4096}}, "streaming"},
    {"softmax_backward", {{"rows", 8192}, {"classes", 4096}}, "reduction"},
    {"residual_add_rmsnorm", {{"tokens", 8192}, {"hidden", 4096}}, "reduction"},
    {"rope", {{"tokens", 8192}, {"heads", 32}}, "streaming"},
    {"batched_gemm", {{"batch", 16}, {"m", 1024}, {"k", 1024}, {"n", 1024}}, "mma"},
  };
  return all;
}

result<std::vector<corpus_kernel>> template_variants(
  const std::vector<std::string>& problems, size_t each) {
  std::vector<corpus_kernel> out;
  for (const ranked_problem& what : ranked_problems()) {
    if (!problems.empty()
      && std::find(problems.begin(), problems.end(), what.name) == problems.end())
      continue;
    auto target = builtin_problem(what.name);
    if (!target)
      return pass(target);
    // Points that only the small sizes of a problem like are none here.
    target->workloads.resize(1);
    target->workloads[0].axes = what.axes;
    const auto graph = parse_op_graph(target->graph_json);
    if (!graph)
      return pass(graph);
    const auto space = program_space::make(*target, *graph);
    if (!space)
      return pass(space);
    if (space->stages(0) != 1)
      return fail(errc::unsupported, fmt::format("{} is no single stage", what.name));
    const program_point first = space->first();
    for (const size_t place : evenly(space->points(0, 0), each, first.stages[0])) {
      auto kernel = bind(what, *target, *space, {0, {place}});
      if (!kernel)
        return fail(kernel.error().code, fmt::format("{}: {}", what.name, kernel.error().what));
      out.push_back(std::move(*kernel));
    }
  }
  return out;
}

} // namespace gristmill::calibration
