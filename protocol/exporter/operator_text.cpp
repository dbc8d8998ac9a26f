#include "protocol/exporter/export_plan.hpp"
#include "protocol/expression_node.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace gristmill {

namespace {

/// JSON's strings are Python's, but for what lies beyond ASCII, which is escaped.
std::string python_string(std::string_view text) {
  return ordered_json(std::string{text})
    .dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

std::string python_list(const std::vector<std::string>& list) {
  std::vector<std::string> quoted;
  for (const auto& each : list)
    quoted.push_back(python_string(each));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

const char* python_type(const tensor_spec& spec) {
  if (!spec.is_scalar)
    return "torch.Tensor";
  return spec.type == dtype::boolean ? "bool" : is_float(spec.type) ? "float" : "int";
}

std::string torch_dtype(dtype type) {
  return fmt::format("torch.{}", is_packed(type) ? "float4_e2m1fn_x2" : name(type));
}

using axis_names = std::map<std::string, std::string, std::less<>>;

/// An axis expression as Python over other names: the grammar is Python's own.
result<std::string> python_expression(
  const expression& parsed, uint32_t index, const axis_names& known) {
  const auto& node = parsed.nodes()[index];
  switch (node.what) {
  case expression_node::kind::integer:
    return fmt::format("{}", node.integer);
  case expression_node::kind::floating:
    return fmt::format("{}", node.floating);
  case expression_node::kind::boolean:
    return std::string{node.boolean ? "1" : "0"};
  case expression_node::kind::name: {
    const auto found = known.find(node.subject.name);
    if (found == known.end())
      return fail(errc::unsupported,
        fmt::format("axis {} does not follow from the inputs", excerpt(node.subject.name)));
    return found->second;
  }
  case expression_node::kind::unary: {
    auto inner = python_expression(parsed, node.children[0], known);
    if (!inner)
      return inner;
    return fmt::format("({}{})", node.spelling, *inner);
  }
  case expression_node::kind::binary: {
    auto left = python_expression(parsed, node.children[0], known);
    if (!left)
      return left;
    auto right = python_expression(parsed, node.children[1], known);
    if (!right)
      return right;
    return fmt::format("({} {} {})", *left, node.spelling, *right);
  }
  case expression_node::kind::call:
  case expression_node::kind::subject_call:
    break;
  }
  return fail(errc::unsupported, "an axis expression has no functions");
}

bool is_literal(const std::string& text) {
  return !text.empty()
    && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Python that makes the outputs from the inputs' shapes.
result<std::string> outputs_text(const definition& def) {
  std::string text;
  std::string device;
  axis_names known;
  for (size_t a = 0; a < def.axes.size(); ++a) {
    const auto& axis_name = def.axes[a].name;
    for (const auto& spec : def.inputs) {
      const auto at = std::find(spec.shape.begin(), spec.shape.end(), axis_name);
      if (spec.is_scalar || is_literal(axis_name) || at == spec.shape.end())
        continue;
      const auto dimension = static_cast<size_t>(at - spec.shape.begin());
      const bool doubled = is_packed(spec.type) && dimension + 1 == spec.shape.size();
      text += fmt::format(
        "    axis_{} = {}.shape[{}]{}\n", a, spec.name, dimension, doubled ? " * 2" : "");
      known[axis_name] = fmt::format("axis_{}", a);
      break;
    }
    if (known.count(axis_name) == 0 && def.axes[a].kind == axis_kind::constant) {
      text += fmt::format("    axis_{} = {}\n", a, def.axes[a].value);
      known[axis_name] = fmt::format("axis_{}", a);
    }
  }
  for (size_t a = 0; a < def.axes.size(); ++a) {
    const auto& one = def.axes[a];
    if (one.kind != axis_kind::expression || known.count(one.name) != 0)
      continue;
    auto parsed = parse_expression(one.expression, expression_mode::axis);
    if (!parsed)
      return pass(parsed);
    auto code =
      python_expression(*parsed, static_cast<uint32_t>(parsed->nodes().size() - 1), known);
    if (!code)
      continue; // An error only where an output needs it.
    // `/` makes a float of a size.
    const bool is_float = parsed->calls("/") || parsed->calls("**");
    text += fmt::format("    axis_{} = {}({})\n", a, is_float ? "int" : "", *code);
    known[one.name] = fmt::format("axis_{}", a);
  }
  // The other way round: `fused = 2 * width` tells `width`, too, when a tensor tells `fused`.
  for (const auto& one : def.axes) {
    auto parsed = one.kind == axis_kind::expression && known.count(one.name) != 0
      ? parse_expression(one.expression, expression_mode::axis)
      : fail(errc::not_found, "");
    if (!parsed || parsed->nodes().size() != 3 || parsed->nodes().back().spelling != "*")
      continue;
    const auto& nodes = parsed->nodes();
    const bool name_first = nodes[0].what == expression_node::kind::name;
    const auto& name_node = nodes[name_first ? 0 : 1];
    const auto& factor = nodes[name_first ? 1 : 0];
    if (name_node.what != expression_node::kind::name
      || factor.what != expression_node::kind::integer || factor.integer < 1
      || known.count(name_node.subject.name) != 0)
      continue;
    known[name_node.subject.name] = fmt::format("({} // {})", known[one.name], factor.integer);
  }
  for (const auto& spec : def.inputs)
    if (!spec.is_scalar && device.empty())
      device = spec.name + ".device";
  if (device.empty())
    return fail(errc::unsupported, "no input is a tensor, so an operator has no device");
  std::vector<std::string> made;
  for (const auto& spec : def.outputs) {
    std::vector<std::string> sizes;
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      const auto& size = spec.shape[d];
      const auto digits = size.find_first_not_of('0');
      const auto found = known.find(size);
      if (!is_literal(size) && found == known.end())
        return fail(errc::unsupported,
          fmt::format(
            "output {}: axis {} does not follow from the inputs", spec.name, excerpt(size)));
      auto code = !is_literal(size)   ? found->second
        : digits == std::string::npos ? std::string{"0"}
                                      : size.substr(digits);
      if (is_packed(spec.type) && d + 1 == spec.shape.size())
        code += " // 2";
      sizes.push_back(std::move(code));
    }
    made.push_back(fmt::format("torch.empty([{}], dtype={}, device={})", fmt::join(sizes, ", "),
      torch_dtype(spec.type), device));
  }
  return text + fmt::format("    return [{}]\n", fmt::join(made, ",\n            "));
}

} // namespace

result<std::string> operator_text(const definition& def, const std::string& operator_name,
  const std::string& about, const exported_plan& built) {
  auto outputs = outputs_text(def);
  if (!outputs)
    return fail(outputs.error().code, "torch operator: " + outputs.error().what);
  std::vector<std::string> parameters;
  std::vector<std::string> names;
  for (const auto& spec : def.inputs) {
    parameters.push_back(fmt::format("{}: {}", spec.name, python_type(spec)));
    names.push_back(spec.name);
  }
  std::vector<std::string> files;
  for (const auto& file : built.sources)
    if (file.path.ends_with(".cu") || file.path.ends_with(".cpp"))
      files.push_back(file.path);
  if (def.outputs.empty())
    return fail(errc::unsupported, "torch operator: the problem has no output");
  const bool single = def.outputs.size() == 1;
  const std::string returns = single
    ? "torch.Tensor"
    : fmt::format(
      "Tuple[{}]", fmt::join(std::vector<std::string>(def.outputs.size(), "torch.Tensor"), ", "));
  const auto signature = fmt::format("{}", fmt::join(parameters, ", "));
  const auto call = fmt::format("{}", fmt::join(names, ", "));
  std::string text = fmt::format("# Made by gristmill export.\n{}\n\n", about);
  text += "import os\nfrom typing import Tuple\n\nimport torch\nfrom torch.utils.cpp_extension "
          "import load\n\n_HERE = os.path.dirname(os.path.abspath(__file__))\n";
  text += fmt::format("_SOURCES = {}\n_module = None\n\n\n", python_list(files));
  text += "def _gm_build(verbose=False):\n"
          "    \"\"\"Builds the extension once a process; torch keeps what it has built.\"\"\"\n"
          "    global _module\n    if _module is None:\n        _module = load(\n";
  text += fmt::format("            name={},\n", python_string("gristmill_" + operator_name));
  text += "            sources=[os.path.join(_HERE, name) for name in _SOURCES],\n";
  text += fmt::format("            extra_cflags={},\n", python_list(built.options.cflags));
  text +=
    fmt::format("            extra_cuda_cflags={},\n", python_list(built.options.cuda_cflags));
  text += fmt::format("            extra_ldflags={},\n", python_list(built.options.ld_flags));
  text += "            extra_include_paths=[_HERE],\n            verbose=verbose,\n        )\n"
          "    return _module\n\n\nbuild = _gm_build\n\n\n";
  text += fmt::format("def _gm_outputs({}):\n{}\n\n", signature, *outputs);
  text += fmt::format(
    "@torch.library.custom_op(\"gristmill::{0}\", mutates_args=(), device_types=\"cuda\")\n"
    "def {0}({1}) -> {2}:\n    gm_outputs = _gm_outputs({3})\n    _gm_build().run({3}, "
    "*gm_outputs)\n"
    "    return {4}\n\n\n",
    operator_name, signature, returns, call, single ? "gm_outputs[0]" : "tuple(gm_outputs)");
  text += fmt::format("@{0}.register_fake\ndef _({1}):\n    gm_outputs = _gm_outputs({2})\n"
                      "    return {3}\n",
    operator_name, signature, call, single ? "gm_outputs[0]" : "tuple(gm_outputs)");
  return text;
}

} // namespace gristmill
