#include "kernels/kernel_signature.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

bool is_literal(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

} // namespace

kernel_signature::kernel_signature(const fused_kernel& kernel, const definition& def)
  : identifiers_(cpp_identifiers(def)), input_count_(def.inputs.size()),
    scalars_(def.inputs.size()), taken_(identifiers_.begin(), identifiers_.end()) {
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool is_read = std::any_of(kernel.loads.begin(), kernel.loads.end(),
      [&](const ir_load& load) { return load.input == static_cast<int>(i); });
    if (is_read)
      add(
        fmt::format("const {}* __restrict__ {}", element_type(def.inputs[i].type), identifiers_[i]),
        identifiers_[i], qualified_name("in", def.inputs[i].name));
  }
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    const std::string& name = identifiers_[input_count_ + i];
    add(fmt::format("{}* __restrict__ {}", element_type(def.outputs[i].type), name), name,
      qualified_name("out", def.outputs[i].name));
  }
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool is_used = std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
      [&](const ir_node& n) { return n.op == ir_op::scalar && n.scalar == static_cast<int>(i); });
    if (!is_used)
      continue;
    scalars_[i] = identifiers_[i];
    add(fmt::format("float {}", identifiers_[i]), identifiers_[i],
      fmt::format("{}:f32", qualified_name("in", def.inputs[i].name)));
  }
}

void kernel_signature::add(std::string declaration, std::string name, std::string argument) {
  taken_.insert(name);
  declarations_.push_back(std::move(declaration));
  names_.push_back(std::move(name));
  arguments_.push_back(std::move(argument));
}

std::string kernel_signature::fresh(std::string wanted) {
  while (!taken_.insert(wanted).second)
    wanted += '_';
  return wanted;
}

std::string kernel_signature::buffer(
  std::string wanted, std::string_view type, std::string argument) {
  std::string name = fresh(std::move(wanted));
  add(fmt::format("{}* __restrict__ {}", type, name), name, std::move(argument));
  return name;
}

std::string kernel_signature::integer(
  std::string_view wanted_name, const std::string& plan_expression, std::string_view type) {
  if (is_literal(plan_expression))
    return plan_expression;
  const auto key = std::make_pair(std::string{type}, plan_expression);
  if (const auto found = integers_.find(key); found != integers_.end())
    return found->second;
  std::string name = fresh(std::string{wanted_name});
  add(fmt::format("{} {}", type, name), name,
    fmt::format("{}:{}", plan_expression, type == "int32_t" ? "i32" : "i64"));
  integers_[key] = name;
  return name;
}

std::string kernel_signature::address(const tensor_access& access, std::string_view tensor,
  const std::vector<std::string>& group_indices, std::string_view cast) {
  std::string text;
  const auto append = [&](const std::string& term) { text += text.empty() ? term : " + " + term; };
  const auto converted = [&](const std::string& number) {
    return is_literal(number) ? number : fmt::format("{}({})", cast, number);
  };
  if (!access.base.empty())
    append(converted(integer(fmt::format("{}_base", tensor), access.base)));
  for (size_t g = 0; g < access.strides.size(); ++g) {
    if (access.strides[g].empty())
      continue;
    const std::string stride = integer(fmt::format("{}_stride{}", tensor, g), access.strides[g]);
    append(stride == "1" ? group_indices[g]
                         : fmt::format("{} * {}", group_indices[g], converted(stride)));
  }
  return text.empty() ? "0" : text;
}

std::string kernel_signature::declarations() const {
  return fmt::format("{}", fmt::join(declarations_, ", "));
}

std::string kernel_signature::names() const {
  return fmt::format("{}", fmt::join(names_, ", "));
}

} // namespace gristmill
