#pragma once

#include "kernels/families/kernel_parameters.hpp"
#include "kernels/families/size_formulas.hpp"
#include "kernels/stage.hpp"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// What readers of families have in common: checks graph and definition against each other, makes
/// the formulas of sizes and turns `no_template` into `unsupported`.
result<stage_space_ptr> read_family(const problem& target, const op_graph& graph,
  const std::function<stage_space_ptr(const size_formulas&)>& read);

/// A plan with one variant for all shapes; `scratch` may be empty.
std::string single_variant_plan(const nlohmann::ordered_json& defines,
  const nlohmann::ordered_json& steps, const nlohmann::ordered_json& scratch);

/// The lines that begin a kernel's body.
std::string indented_sizes(const kernel_parameters& parameters);

/// The value of a launch-plan expression over axes for a workload. Nothing when it has none.
std::optional<int64_t> value_at(
  const problem& target, const workload& work, const std::string& plan_expression);

/// Whether all those launch-plan conditions over axes hold at every workload.
bool hold_everywhere(const problem& target, const std::vector<std::string>& conditions);

/// Two sizes at the workload where their product is largest; zeros when there is none.
std::pair<int64_t, int64_t> largest_sizes(
  const problem& target, const std::string& first, const std::string& second);

} // namespace gristmill
