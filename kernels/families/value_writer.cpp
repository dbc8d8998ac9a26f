#include "kernels/families/value_writer.hpp"

#include "kernels/expression_writer.hpp"
#include "kernels/graph_operands.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

// Bounds on what a hostile graph can make us do: recursion, and size of the result.
constexpr size_t depth_max = 300;
constexpr size_t code_max = 200'000;

struct helper {
  std::string_view name;
  std::string_view text;
};

constexpr helper helpers[] = {
  {"round_bf16(",
    "__device__ __forceinline__ float round_bf16(float x) {\n"
    "  return __bfloat162float(__float2bfloat16_rn(x));\n}\n"},
  {"round_fp16(",
    "__device__ __forceinline__ float round_fp16(float x) {\n"
    "  return __half2float(__float2half_rn(x));\n}\n"},
  {"sigmoid(",
    "__device__ __forceinline__ float sigmoid(float x) {\n"
    "  return 1.0f / (1.0f + expf(-x));\n}\n"},
  {"gelu(",
    "__device__ __forceinline__ float gelu(float x) {\n"
    "  return 0.5f * x * (1.0f + erff(x * 0.70710678f));\n}\n"},
  {"gelu_tanh(",
    "__device__ __forceinline__ float gelu_tanh(float x) {\n"
    "  return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));\n"
    "}\n"},
  {"softplus(",
    "__device__ __forceinline__ float softplus(float x, float beta, float limit) {\n"
    "  return x * beta > limit ? x : log1pf(expf(x * beta)) / beta;\n}\n"},
  {"floor_over(",
    "// Rounded down, as Python divides.\n"
    "__device__ __forceinline__ int64_t floor_over(int64_t a, int64_t b) {\n"
    "  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);\n}\n"},
  {"python_rest(",
    "// With the sign of the divisor.\n"
    "__device__ __forceinline__ float python_rest(float a, float b) {\n"
    "  const float r = fmodf(a, b);\n"
    "  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;\n}\n"},
};

} // namespace

number_kind kind_of(std::string_view torch_dtype) {
  if (torch_dtype == "bool")
    return number_kind::truth;
  if (torch_dtype == "int64" || torch_dtype == "int32" || torch_dtype == "int16"
    || torch_dtype == "int8" || torch_dtype == "uint8")
    return number_kind::integer;
  if (torch_dtype == "float32" || torch_dtype == "bfloat16" || torch_dtype == "float16"
    || torch_dtype == "float8_e4m3fn" || torch_dtype == "float8_e5m2")
    return number_kind::number;
  throw no_template{fmt::format("values of type {} belong to no template family yet", torch_dtype)};
}

std::string converted(const written_value& value, number_kind kind) {
  if (value.kind == kind)
    return value.text;
  switch (kind) {
  case number_kind::truth:
    return fmt::format("({} != 0)", value.text);
  case number_kind::integer:
    return fmt::format("int64_t({})", value.text);
  case number_kind::number:
    return value.kind == number_kind::truth ? fmt::format("({} ? 1.0f : 0.0f)", value.text)
                                            : fmt::format("float({})", value.text);
  }
  return {};
}

const graph_operand* argument_of(
  const graph_node& node, size_t position, std::string_view keyword) {
  const graph_operand* found =
    position < node.inputs.size() ? &node.inputs[position] : find_attr(node, keyword);
  return found == nullptr || found->kind == operand_kind::none ? nullptr : found;
}

int64_t integer_argument(
  const graph_node& node, size_t position, std::string_view keyword, int64_t fallback) {
  const graph_operand* found = argument_of(node, position, keyword);
  if (found == nullptr)
    return fallback;
  if (found->kind != operand_kind::integer && found->kind != operand_kind::boolean)
    refuse_node(node, fmt::format("has an argument {} that is no integer", position));
  return found->integer;
}

size_t front_dimension(const graph_node& node, int64_t dim, size_t dimensions) {
  const int64_t from_front = dim < 0 ? dim + static_cast<int64_t>(dimensions) : dim;
  if (from_front < 0 || from_front >= static_cast<int64_t>(dimensions))
    refuse_node(node, fmt::format("names the dimension {}, which does not exist", dim));
  return static_cast<size_t>(from_front);
}

void refuse_node(const graph_node& node, std::string_view why) {
  throw no_template{fmt::format("operator '{}' {}", node.op, why)};
}

std::string_view plain_op(std::string_view op) {
  if (op.size() > 1 && op.ends_with('_') && !op.ends_with("__"))
    op.remove_suffix(1);
  return op;
}

value_writer::value_writer(const problem& target, const op_graph& graph, const size_formulas& sizes)
  : target_(target), graph_(graph), sizes_(sizes), pool_(sizes), parameters_(target.def) {
  for (const auto& what : graph.values)
    values_[what.id] = &what;
  for (const auto& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      origins_[node.outputs[i]] = {&node, i};
  }
}

std::pair<const graph_node*, size_t> value_writer::origin(int64_t id) const {
  const auto found = origins_.find(id);
  return found == origins_.end() ? std::pair<const graph_node*, size_t>{nullptr, 0} : found->second;
}

const graph_value& value_writer::tensor(const graph_node& node, size_t position) const {
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
    refuse_node(node, fmt::format("has no tensor as its argument {}", position));
  return value(node.inputs[position].value);
}

std::string value_writer::fresh(std::string_view stem) {
  return fmt::format("{}{}", stem, names_++);
}

void value_writer::line(const std::string& text) {
  if (code_.size() > code_max)
    throw no_template{"the graph is too long for one kernel"};
  code_ += std::string(2 * scopes_.size(), ' ') + text + "\n";
}

void value_writer::open(const std::string& head) {
  line(head + " {");
  scopes_.emplace_back();
}

void value_writer::close() {
  scopes_.pop_back();
  line("}");
}

std::string value_writer::take() {
  std::string text;
  text.swap(code_);
  return text;
}

void value_writer::forget() {
  scopes_.assign(1, {});
}

value_writer::snapshot value_writer::save() const {
  return {scopes_, code_, names_, depth_};
}

void value_writer::restore(const snapshot& saved) {
  scopes_ = saved.scopes;
  code_ = saved.code;
  names_ = saved.names;
  depth_ = saved.depth;
}

std::string value_writer::text(index_id id) {
  return pool_.text(id, [&](const std::string& formula) { return parameters_.size(formula); });
}

written_value value_writer::named(std::string_view stem, const written_value& value) {
  const bool is_plain = value.text.find_first_of(" ([?") == std::string::npos;
  if (is_plain)
    return value;
  const char* type = value.kind == number_kind::number ? "float"
    : value.kind == number_kind::integer               ? "int64_t"
                                                       : "bool";
  const std::string name = fresh(stem);
  line(fmt::format("const {} {} = {};", type, name, value.text));
  return {name, value.kind};
}

written_value value_writer::declared(std::string_view dtype) {
  const number_kind kind = kind_of(dtype);
  const std::string name = fresh("v");
  line(kind == number_kind::number   ? fmt::format("float {} = 0.0f;", name)
      : kind == number_kind::integer ? fmt::format("int64_t {} = 0;", name)
                                     : fmt::format("bool {} = false;", name));
  return {name, kind};
}

index_id value_writer::input_dim(const tensor_spec& spec, size_t dim) {
  // The declared size and the traced one are the same, so that equal sizes have one name.
  for (const auto& what : graph_.values) {
    if (what.source == graph_source::input && what.name == spec.name
      && what.shape.size() == spec.shape.size())
      return pool_.size(traced_shape(what)[dim]);
  }
  throw no_template{fmt::format("the graph has no input '{}' of that shape", spec.name)};
}

std::vector<index_id> value_writer::input_shape(const tensor_spec& spec) {
  std::vector<index_id> shape;
  for (size_t i = 0; i < spec.shape.size(); ++i)
    shape.push_back(input_dim(spec, i));
  return shape;
}

std::string value_writer::address(const tensor_spec& spec, const std::vector<index_id>& index) {
  return text(pool_.flat(index, input_shape(spec)));
}

written_value value_writer::rounded(std::string_view torch_dtype, const written_value& value) {
  const number_kind kind = kind_of(torch_dtype);
  const std::string text = converted(value, kind);
  if (torch_dtype == "bfloat16")
    return {fmt::format("round_bf16({})", text), kind};
  if (torch_dtype == "float16")
    return {fmt::format("round_fp16({})", text), kind};
  if (torch_dtype == "float8_e4m3fn")
    return {fmt::format("float(__nv_fp8_e4m3({}))", text), kind};
  if (torch_dtype == "float8_e5m2")
    return {fmt::format("float(__nv_fp8_e5m2({}))", text), kind};
  if (kind == number_kind::integer && torch_dtype != "int64")
    return {fmt::format("int64_t({}_t({}))", torch_dtype, text), kind};
  return {text, kind};
}

void value_writer::store(size_t output, const std::string& position, const written_value& value) {
  const tensor_spec& spec = target_.def.outputs[output];
  const number_kind kind = kind_of(name(spec.type));
  line(fmt::format("{}[{}] = {}({});", parameters_.output(output), position,
    storage_type(spec.type), converted(value, kind)));
}

written_value value_writer::read(int64_t id, const std::vector<index_id>& index) {
  const place key{id, index};
  for (auto known = scopes_.rbegin(); known != scopes_.rend(); ++known) {
    if (const auto found = known->find(key); found != known->end())
      return found->second;
  }
  if (depth_ >= depth_max)
    throw no_template{"the graph is too deep for one kernel"};
  ++depth_;
  const graph_value& what = value(id);
  if (what.shape.size() != index.size())
    throw no_template{fmt::format("value {} is read with another number of dimensions", id)};
  written_value made = named("v", read_fresh(what, index));
  --depth_;
  scopes_.back().emplace(key, made);
  return made;
}

written_value value_writer::read_fresh(const graph_value& what, const index_list& index) {
  switch (what.source) {
  case graph_source::input:
    return read_input(what, index);
  case graph_source::scalar_input: {
    graph_operand operand;
    operand.kind = operand_kind::scalar_input;
    operand.text = what.name;
    return read_operand(operand, what, index);
  }
  case graph_source::constant:
    return read_constant(what, index);
  case graph_source::computed:
    break;
  }
  const auto [node, output] = origin(what.id);
  if (node == nullptr)
    throw no_template{fmt::format("nothing computes value {} of the graph", what.id)};
  return read_node(*node, output, what, index);
}

written_value value_writer::read_input(const graph_value& what, const index_list& index) {
  const auto& inputs = target_.def.inputs;
  const auto found = std::find_if(inputs.begin(), inputs.end(),
    [&](const tensor_spec& spec) { return spec.name == what.name && !spec.is_scalar; });
  if (found == inputs.end() || found->shape.size() != what.shape.size())
    throw no_template{
      fmt::format("the graph's input '{}' is no such tensor of the definition", what.name)};
  if (input_hook_) {
    if (auto given = input_hook_(static_cast<size_t>(found - inputs.begin()), index))
      return *given;
  }
  const number_kind kind = kind_of(name(found->type));
  const std::string element = fmt::format("{}[{}]",
    parameters_.input(static_cast<size_t>(found - inputs.begin())), address(*found, index));
  if (kind == number_kind::truth)
    return {element, kind};
  return {fmt::format("{}({})", kind == number_kind::number ? "float" : "int64_t", element), kind};
}

written_value value_writer::read_constant(const graph_value& what, const index_list& index) {
  const number_kind kind = kind_of(what.dtype);
  const auto literal = [&](double number) {
    return kind == number_kind::number ? float_literal(number)
      : kind == number_kind::integer   ? fmt::format("int64_t({})", static_cast<int64_t>(number))
      : number != 0                    ? std::string{"true"}
                                       : std::string{"false"};
  };
  if (what.constant.size() == 1)
    return {literal(what.constant.front()), kind};
  std::vector<std::string> elements;
  for (double number : what.constant)
    elements.push_back(literal(number));
  const std::string table = fmt::format("table{}", what.id);
  tables_[what.id] = fmt::format("__device__ const {} {}[] = {{{}}};\n",
    kind == number_kind::number      ? "float"
      : kind == number_kind::integer ? "int64_t"
                                     : "bool",
    table, fmt::join(elements, ", "));
  return {fmt::format("{}[{}]", table, text(pool_.flat(index, pool_.shape(shape_of(what))))), kind};
}

std::optional<std::string> value_writer::formula_of(const graph_operand& operand) const {
  if (operand.integer_again)
    return sizes_.text({operand.integer, *operand.integer_again});
  return sizes_.axis_of(operand.integer);
}

written_value value_writer::read_operand(
  const graph_operand& operand, const graph_value& result, const std::vector<index_id>& index) {
  switch (operand.kind) {
  case operand_kind::value: {
    const graph_value& from = value(operand.value);
    return read(from.id, broadcast_index(from, result, index, pool_.constant(0)));
  }
  case operand_kind::number:
    if (operand.varies) {
      const auto formula = sizes_.number_of(operand.number, operand.number_again);
      if (!formula)
        throw no_template{"a number that the reference computes from the shape or from a scalar "
                          "input belongs to no template family yet"};
      return {parameters_.number(*formula), number_kind::number};
    }
    return {float_literal(operand.number), number_kind::number};
  case operand_kind::integer:
    if (operand.varies) {
      const auto formula = formula_of(operand);
      if (!formula)
        throw no_template{
          fmt::format("an argument {} follows the shape in a way not understood", operand.integer)};
      return {fmt::format("int64_t({})", parameters_.size(*formula)), number_kind::integer};
    }
    return {fmt::format("int64_t({})", operand.integer), number_kind::integer};
  case operand_kind::boolean:
    return {operand.integer != 0 ? "true" : "false", number_kind::truth};
  case operand_kind::scalar_input:
    return {parameters_.scalar(scalar_position(target_.def, operand)), number_kind::number};
  default:
    throw no_template{"an argument is neither a number nor a tensor"};
  }
}

written_value value_writer::read_node(
  const graph_node& node, size_t output, const graph_value& what, const index_list& index) {
  if (hook_) {
    if (auto given = hook_(node, output, index))
      return *given;
  }
  if (auto moved = read_moved(node, output, what, index))
    return *moved;
  if (auto joined = read_joined(node, what, index))
    return *joined;
  if (auto gathered = read_gathered(node, what, index))
    return *gathered;
  if (auto made = read_made(node, what, index))
    return *made;
  if (auto window = read_window(node, output, what, index))
    return *window;
  return rounded(what.dtype, read_pointwise(node, what, index));
}

std::string value_writer::preamble(const std::string& body) const {
  std::string text;
  // A type may stand among the parameters alone.
  const std::string all = parameters_.declarations() + body;
  const auto names = [&](std::string_view what) { return all.find(what) != std::string::npos; };
  if (names("__nv_bfloat16") || names("round_bf16("))
    text += "#include <cuda_bf16.h>\n";
  if (names("__half") || names("round_fp16("))
    text += "#include <cuda_fp16.h>\n";
  if (names("__nv_fp8"))
    text += "#include <cuda_fp8.h>\n";
  text += "#include <cstdint>\n#include <math.h>\n";
  text += macro_lines(target_.def, {"WIDE"});
  text += "\n#if WIDE\nusing index_t = int64_t;\n#else\nusing index_t = int32_t;\n#endif\n\n";
  for (const helper& one : helpers) {
    if (body.find(one.name) != std::string::npos)
      text += std::string{one.text} + "\n";
  }
  for (const auto& [id, table] : tables_)
    text += table;
  return text;
}

std::string value_writer::wide_expression() const {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& count) {
    // A little below 2^31: the threads of the last block count beyond the end.
    std::string part = count + " >= 2147418112";
    if (std::find(parts.begin(), parts.end(), part) == parts.end() && parts.size() < 60)
      parts.push_back(std::move(part));
  };
  for (const auto& count : parameters_.element_counts())
    add(count);
  for (const auto& count : extents_)
    add(count);
  return fmt::format("{}", fmt::join(parts, " or "));
}

} // namespace gristmill
