#include "kernels/families/kernel_parameters.hpp"

#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"
#include "protocol/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

std::string_view storage_type(dtype type) {
  if (type == dtype::float64 || type == dtype::float4_e2m1 || type == dtype::float4_e2m1fn_x2)
    throw no_template{
      fmt::format("a tensor of type {} belongs to no template family yet", name(type))};
  return cpp_type(type);
}

kernel_parameters::kernel_parameters(const definition& def)
  : def_(def), identifiers_(cpp_identifiers(def)) {}

std::string kernel_parameters::add(
  const std::string& key, const std::string& declaration, const std::string& name) {
  declarations_.push_back(declaration);
  arguments_.push_back(key);
  known_[key] = name;
  return name;
}

std::string kernel_parameters::input(size_t index) {
  const tensor_spec& spec = def_.inputs[index];
  const std::string key = qualified_name("in", spec.name);
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  const std::string name = "in_" + identifiers_[index];
  counts_.push_back(fmt::format("numel({})", key));
  return add(key, fmt::format("const {}* __restrict__ {}", storage_type(spec.type), name), name);
}

std::string kernel_parameters::output(size_t index) {
  const tensor_spec& spec = def_.outputs[index];
  const std::string key = qualified_name("out", spec.name);
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  const std::string name = "out_" + identifiers_[def_.inputs.size() + index];
  counts_.push_back(fmt::format("numel({})", key));
  return add(key, fmt::format("{}* __restrict__ {}", storage_type(spec.type), name), name);
}

std::string kernel_parameters::scalar(size_t index) {
  const std::string key = qualified_name("in", def_.inputs[index].name) + ":f32";
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  const std::string name = "s_" + identifiers_[index];
  return add(key, "float " + name, name);
}

std::string kernel_parameters::size(const std::string& formula) {
  if (formula.find_first_not_of("0123456789") == std::string::npos)
    return formula;
  const std::string key = formula + ":i64";
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  const std::string name = fmt::format("n{}", size_lines_.size());
  size_lines_.push_back(fmt::format("const index_t {0} = index_t({0}_);\n", name));
  return add(key, fmt::format("int64_t {}_", name), name);
}

std::string kernel_parameters::number(const std::string& formula) {
  const std::string key = formula + ":f32";
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  const std::string name = fmt::format("s_{}", declarations_.size());
  return add(key, "float " + name, name);
}

std::string kernel_parameters::scratch(const std::string& name, std::string_view type) {
  const std::string key = qualified_name("scratch", name);
  if (const auto found = known_.find(key); found != known_.end())
    return found->second;
  return add(key, fmt::format("{}* __restrict__ scratch_{}", type, name), "scratch_" + name);
}

std::string kernel_parameters::declarations() const {
  return fmt::format("{}", fmt::join(declarations_, ",\n  "));
}

std::string kernel_parameters::size_lines() const {
  return fmt::format("{}", fmt::join(size_lines_, ""));
}

} // namespace gristmill
