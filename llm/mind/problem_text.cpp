#include "llm/mind/problem_text.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

std::string shape_of(const tensor_spec& spec) {
  if (spec.is_scalar)
    return "scalar";
  std::string out = "[";
  for (const auto& axis : spec.shape)
    out += (out.size() == 1 ? "" : ", ") + axis;
  return out + "]";
}

void add_tensors(std::string& out, const char* what, const std::vector<tensor_spec>& specs) {
  for (const auto& spec : specs)
    out += fmt::format("{} {}: {} {}{}\n", what, spec.name, name(spec.type), shape_of(spec),
      spec.description.empty() ? "" : " (" + spec.description + ")");
}

std::string signature_of(const definition& def) {
  std::string out;
  for (const auto& axis : def.axes) {
    if (axis.kind == axis_kind::constant)
      out += fmt::format("axis {} = {}\n", axis.name, axis.value);
    else if (axis.kind == axis_kind::expression)
      out += fmt::format("axis {} = {}\n", axis.name, axis.expression);
    else
      out += fmt::format("axis {}: differs from workload to workload\n", axis.name);
  }
  add_tensors(out, "input", def.inputs);
  add_tensors(out, "output", def.outputs);
  return out;
}

std::string value_text(const python_number& value) {
  return std::visit([](auto v) { return fmt::format("{}", v); }, value);
}

std::string workload_line(const definition& def, const workload& work) {
  auto axes = resolve_axes(def, work.axes);
  std::string out = "- " + work.uuid + ":";
  for (const auto& [name, value] : axes ? *axes : work.axes)
    out += fmt::format(" {}={}", name, value);
  for (const auto& input : work.inputs)
    if (input.kind == input_kind::scalar)
      out += fmt::format(" {}={}", input.name, value_text(input.value));
  out += fmt::format("; {:g} of the elements within {:g} + {:g} * |reference|",
    work.allowed.matched_ratio, work.allowed.atol, work.allowed.rtol);
  if (work.allowed.error_cap)
    out += fmt::format(", none off by more than {:g}", *work.allowed.error_cap);
  return out + "\n";
}

} // namespace

prompt_problem prompt_problem_of(const problem& of) {
  prompt_problem out;
  out.name = of.name;
  out.description = of.def.description;
  out.signature = signature_of(of.def);
  for (const auto& work : of.workloads)
    out.workloads += workload_line(of.def, work);
  out.reference = of.def.reference;
  return out;
}

std::vector<std::string> operators_of(const problem& of) {
  return of.def.op_type.empty() ? std::vector<std::string>{}
                                : std::vector<std::string>{of.def.op_type};
}

} // namespace gristmill
