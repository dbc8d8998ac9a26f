#include "kernels/families/family_common.hpp"

#include "kernels/axis_scope.hpp"
#include "kernels/pointwise_operators.hpp"
#include "kernels/vector_code.hpp"
#include "protocol/expression.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

std::optional<int64_t> value_at(
  const problem& target, const workload& work, const std::string& plan_expression) {
  const auto axes = resolve_axes(target.def, work.axes);
  const auto parsed = parse_expression(plan_expression, expression_mode::plan);
  if (!axes || !parsed)
    return std::nullopt;
  const auto value = evaluate_int(*parsed, axis_scope(*axes));
  return value ? std::optional<int64_t>{*value} : std::nullopt;
}

bool hold_everywhere(const problem& target, const std::vector<std::string>& conditions) {
  return std::all_of(target.workloads.begin(), target.workloads.end(), [&](const workload& work) {
    const auto axes = resolve_axes(target.def, work.axes);
    return axes
      && std::all_of(conditions.begin(), conditions.end(), [&](const std::string& condition) {
           const auto parsed = parse_expression(condition, expression_mode::plan);
           if (!parsed)
             return false;
           const auto holds = evaluate_bool(*parsed, axis_scope(*axes));
           return holds && *holds;
         });
  });
}

std::pair<int64_t, int64_t> largest_sizes(
  const problem& target, const std::string& first, const std::string& second) {
  std::pair<int64_t, int64_t> best{0, 0};
  for (const workload& work : target.workloads) {
    const auto a = value_at(target, work, first);
    const auto b = value_at(target, work, second);
    if (a && b
      && static_cast<double>(*a) * static_cast<double>(*b)
        > static_cast<double>(best.first) * static_cast<double>(best.second))
      best = {*a, *b};
  }
  return best;
}

result<stage_space_ptr> read_family(const problem& target, const op_graph& graph,
  const std::function<stage_space_ptr(const size_formulas&)>& read) {
  if (auto checked = validate(graph); !checked)
    return pass(checked);
  if (graph.outputs.empty() || graph.outputs.size() != target.def.outputs.size())
    return fail(errc::unsupported,
      fmt::format("the graph has {} outputs and the definition {}", graph.outputs.size(),
        target.def.outputs.size()));
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const graph_value& value = *find_value(graph, graph.outputs[i]);
    const tensor_spec& spec = target.def.outputs[i];
    if (spec.is_scalar || spec.shape.size() != value.shape.size() || value.dtype != name(spec.type))
      return fail(errc::unsupported,
        fmt::format("output '{}' is traced as {} of {} dimensions, unlike its declaration",
          spec.name, value.dtype, value.shape.size()));
  }
  const auto sizes = size_formulas::make(target, graph);
  if (!sizes)
    return pass(sizes);
  try {
    return read(*sizes);
  } catch (const no_template& refused) {
    return fail(errc::unsupported, refused.reason);
  }
}

std::string single_variant_plan(const nlohmann::ordered_json& defines,
  const nlohmann::ordered_json& steps, const nlohmann::ordered_json& scratch) {
  nlohmann::ordered_json document = {{"schema", "gristmill.plan/1"}};
  if (!scratch.empty())
    document["scratch"] = scratch;
  document["variants"] =
    nlohmann::ordered_json::array({{{"name", "all"}, {"defines", defines}, {"steps", steps}}});
  return document.dump(2) + "\n";
}

std::string indented_sizes(const kernel_parameters& parameters) {
  return indented(parameters.size_lines(), 2);
}

} // namespace gristmill
