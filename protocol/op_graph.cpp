#include "protocol/op_graph.hpp"

#include "protocol/json_document.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

namespace gristmill {

namespace {

using json = ordered_json;

constexpr size_t text_bytes_max = size_t{1} << 20;
constexpr size_t depth_max = 16;
constexpr size_t axes_max = 64;
constexpr size_t values_max = 4096;
constexpr size_t arguments_max = 64;
constexpr size_t dimensions_max = 8;
constexpr size_t constant_elements_max = 64;
constexpr size_t list_max = 1024;
constexpr size_t name_bytes_max = 256;

/// Thrown inside this file only; `parse_op_graph` turns it into a failure.
struct bad_graph {
  std::string what;
};

[[noreturn]] void refuse(std::string what) {
  throw bad_graph{std::move(what)};
}

void check_keys(
  const json& object, const std::string& at, std::initializer_list<const char*> known) {
  if (!object.is_object())
    refuse(fmt::format("{}: expected an object", at));
  for (const auto& [key, unused] : object.items()) {
    if (std::find_if(known.begin(), known.end(), [&](const char* k) { return key == k; })
      == known.end())
      refuse(fmt::format("{}: unknown key \"{}\"; known: {}", at, key, fmt::join(known, ", ")));
  }
}

const json& member(const json& object, const std::string& at, const char* key) {
  const auto found = object.find(key);
  if (found == object.end())
    refuse(fmt::format("{}.{}: missing", at, key));
  return *found;
}

int64_t read_int(const json& j, const std::string& at) {
  // Unsigned values beyond int64 would wrap around silently.
  if (!j.is_number_integer()
    || (j.is_number_unsigned()
      && j.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
    refuse(fmt::format("{}: expected an integer of 64 bits", at));
  return j.get<int64_t>();
}

double read_number(const json& j, const std::string& at) {
  if (j.is_string()) {
    const auto& text = j.get_ref<const std::string&>();
    if (text == "inf")
      return std::numeric_limits<double>::infinity();
    if (text == "-inf")
      return -std::numeric_limits<double>::infinity();
    if (text == "nan")
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (!j.is_number())
    refuse(fmt::format("{}: expected a number, \"inf\", \"-inf\" or \"nan\"", at));
  return j.get<double>();
}

std::string read_text(const json& j, const std::string& at) {
  if (!j.is_string())
    refuse(fmt::format("{}: expected a string", at));
  return j.get<std::string>();
}

std::vector<int64_t> read_ints(const json& j, const std::string& at) {
  if (!j.is_array())
    refuse(fmt::format("{}: expected a list of integers", at));
  if (j.size() > list_max)
    refuse(fmt::format("{}: more than {} elements", at, list_max));
  std::vector<int64_t> list;
  for (size_t i = 0; i < j.size(); ++i)
    list.push_back(read_int(j[i], fmt::format("{}[{}]", at, i)));
  return list;
}

graph_operand read_operand_object(const json& j, const std::string& at) {
  graph_operand operand;
  check_keys(j, at, {"value", "values", "scalar_input", "number", "integer", "varies", "again"});
  if (const auto varies = j.find("varies"); varies != j.end()) {
    if (!varies->is_boolean())
      refuse(fmt::format("{}.varies: expected true or false", at));
    operand.varies = varies->get<bool>();
  }
  const auto again = j.find("again");
  if (again != j.end() && !operand.varies)
    refuse(fmt::format("{}.again: only a number that varies has it", at));
  const size_t others = j.size() - j.count("varies") - j.count("again");
  if (others != 1)
    refuse(
      fmt::format("{}: expected exactly one of value, values, scalar_input, number, integer", at));
  if (j.contains("value")) {
    operand.kind = operand_kind::value;
    operand.value = read_int(j["value"], at + ".value");
  } else if (j.contains("values")) {
    operand.kind = operand_kind::values;
    operand.list = read_ints(j["values"], at + ".values");
  } else if (j.contains("scalar_input")) {
    operand.kind = operand_kind::scalar_input;
    operand.text = read_text(j["scalar_input"], at + ".scalar_input");
  } else if (j.contains("number")) {
    operand.kind = operand_kind::number;
    operand.number = read_number(j["number"], at + ".number");
    if (again != j.end())
      operand.number_again = read_number(*again, at + ".again");
  } else {
    operand.kind = operand_kind::integer;
    operand.integer = read_int(j["integer"], at + ".integer");
    if (again != j.end())
      operand.integer_again = read_int(*again, at + ".again");
  }
  if (again != j.end() && !operand.number_again && !operand.integer_again)
    refuse(fmt::format("{}.again: only a number that varies has it", at));
  return operand;
}

graph_operand read_operand(const json& j, const std::string& at) {
  graph_operand operand;
  if (j.is_null())
    return operand;
  if (j.is_object())
    return read_operand_object(j, at);
  if (j.is_boolean()) {
    operand.kind = operand_kind::boolean;
    operand.integer = j.get<bool>() ? 1 : 0;
  } else if (j.is_number_integer()) {
    operand.kind = operand_kind::integer;
    operand.integer = read_int(j, at);
  } else if (j.is_number()) {
    operand.kind = operand_kind::number;
    operand.number = j.get<double>();
  } else if (j.is_string()) {
    operand.kind = operand_kind::text;
    operand.text = j.get<std::string>();
  } else if (std::all_of(j.begin(), j.end(), [](const json& e) { return e.is_number_integer(); })) {
    operand.kind = operand_kind::integers;
    operand.list = read_ints(j, at);
  } else {
    operand.kind = operand_kind::numbers;
    if (j.size() > list_max)
      refuse(fmt::format("{}: more than {} elements", at, list_max));
    for (size_t i = 0; i < j.size(); ++i)
      operand.numbers.push_back(read_number(j[i], fmt::format("{}[{}]", at, i)));
  }
  return operand;
}

graph_value read_value(const json& j, const std::string& at) {
  check_keys(j, at, {"id", "dtype", "shape", "shape_again", "input", "scalar_input", "constant"});
  graph_value value;
  value.id = read_int(member(j, at, "id"), at + ".id");
  value.dtype = read_text(member(j, at, "dtype"), at + ".dtype");
  value.shape = read_ints(member(j, at, "shape"), at + ".shape");
  if (const auto again = j.find("shape_again"); again != j.end())
    value.shape_again = read_ints(*again, at + ".shape_again");
  if (j.count("input") + j.count("scalar_input") + j.count("constant") > 1)
    refuse(fmt::format("{}: at most one of input, scalar_input, constant", at));
  if (j.contains("input")) {
    value.source = graph_source::input;
    value.name = read_text(j["input"], at + ".input");
  } else if (j.contains("scalar_input")) {
    value.source = graph_source::scalar_input;
    value.name = read_text(j["scalar_input"], at + ".scalar_input");
  } else if (j.contains("constant")) {
    value.source = graph_source::constant;
    const json& elements = j["constant"];
    if (!elements.is_array() || elements.size() > constant_elements_max)
      refuse(fmt::format(
        "{}.constant: expected a list of at most {} numbers", at, constant_elements_max));
    for (size_t i = 0; i < elements.size(); ++i)
      value.constant.push_back(read_number(elements[i], fmt::format("{}.constant[{}]", at, i)));
  }
  return value;
}

graph_node read_node(const json& j, const std::string& at) {
  check_keys(j, at, {"op", "inputs", "outputs", "attrs"});
  graph_node node;
  node.op = read_text(member(j, at, "op"), at + ".op");
  const json& inputs = member(j, at, "inputs");
  if (!inputs.is_array() || inputs.size() > arguments_max)
    refuse(fmt::format("{}.inputs: expected a list of at most {} arguments", at, arguments_max));
  for (size_t i = 0; i < inputs.size(); ++i)
    node.inputs.push_back(read_operand(inputs[i], fmt::format("{}.inputs[{}]", at, i)));
  node.outputs = read_ints(member(j, at, "outputs"), at + ".outputs");
  if (const auto attrs = j.find("attrs"); attrs != j.end()) {
    if (!attrs->is_object() || attrs->size() > arguments_max)
      refuse(fmt::format("{}.attrs: expected an object of at most {} keys", at, arguments_max));
    for (const auto& [key, argument] : attrs->items())
      node.attrs.emplace_back(key, read_operand(argument, at + ".attrs." + key));
  }
  return node;
}

op_graph read_graph(const json& j) {
  check_keys(j, "graph", {"schema", "axes", "axes_again", "values", "nodes", "outputs"});
  if (const auto schema = read_text(member(j, "graph", "schema"), "graph.schema");
      schema != "gristmill.graph/1")
    refuse(fmt::format("graph.schema: \"{}\" is not \"gristmill.graph/1\"", schema));
  op_graph graph;
  const auto read_axes = [](const json& axes, const std::string& at, auto& into) {
    if (!axes.is_object() || axes.size() > axes_max)
      refuse(fmt::format("{}: expected an object of at most {} axes", at, axes_max));
    for (const auto& [name, size] : axes.items())
      into.emplace_back(name, read_int(size, at + "." + name));
  };
  read_axes(member(j, "graph", "axes"), "graph.axes", graph.axes);
  if (const auto again = j.find("axes_again"); again != j.end())
    read_axes(*again, "graph.axes_again", graph.axes_again);
  const auto read_list = [&](const char* key, auto read, auto& into) {
    const json& list = member(j, "graph", key);
    if (!list.is_array() || list.size() > values_max)
      refuse(fmt::format("graph.{}: expected a list of at most {} elements", key, values_max));
    for (size_t i = 0; i < list.size(); ++i)
      into.push_back(read(list[i], fmt::format("{}[{}]", key, i)));
  };
  read_list("values", read_value, graph.values);
  read_list("nodes", read_node, graph.nodes);
  graph.outputs = read_ints(member(j, "graph", "outputs"), "graph.outputs");
  return graph;
}

json number_json(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number > 0 ? "inf" : "-inf";
  return number;
}

json operand_json(const graph_operand& operand) {
  switch (operand.kind) {
  case operand_kind::none:
    return nullptr;
  case operand_kind::value:
    return {{"value", operand.value}};
  case operand_kind::values:
    return {{"values", operand.list}};
  case operand_kind::scalar_input:
    return {{"scalar_input", operand.text}};
  case operand_kind::number:
    if (operand.varies && operand.number_again)
      return {{"number", number_json(operand.number)}, {"varies", true},
        {"again", number_json(*operand.number_again)}};
    if (operand.varies)
      return {{"number", number_json(operand.number)}, {"varies", true}};
    if (!std::isfinite(operand.number))
      return {{"number", number_json(operand.number)}};
    return operand.number;
  case operand_kind::integer:
    if (operand.varies && operand.integer_again)
      return {{"integer", operand.integer}, {"varies", true}, {"again", *operand.integer_again}};
    if (operand.varies)
      return {{"integer", operand.integer}, {"varies", true}};
    return operand.integer;
  case operand_kind::boolean:
    return operand.integer != 0;
  case operand_kind::integers:
    return operand.list;
  case operand_kind::numbers: {
    json list = json::array();
    for (double number : operand.numbers)
      list.push_back(number_json(number));
    return list;
  }
  case operand_kind::text:
    return operand.text;
  }
  return nullptr;
}

json value_json(const graph_value& value) {
  json j = {{"id", value.id}, {"dtype", value.dtype}, {"shape", value.shape}};
  if (!value.shape_again.empty())
    j["shape_again"] = value.shape_again;
  switch (value.source) {
  case graph_source::computed:
    break;
  case graph_source::input:
    j["input"] = value.name;
    break;
  case graph_source::scalar_input:
    j["scalar_input"] = value.name;
    break;
  case graph_source::constant:
    j["constant"] = json::array();
    for (double number : value.constant)
      j["constant"].push_back(number_json(number));
    break;
  }
  return j;
}

json node_json(const graph_node& node) {
  json inputs = json::array();
  for (const auto& operand : node.inputs)
    inputs.push_back(operand_json(operand));
  json j = {{"op", node.op}, {"inputs", std::move(inputs)}, {"outputs", node.outputs}};
  if (!node.attrs.empty()) {
    j["attrs"] = json::object();
    for (const auto& [key, operand] : node.attrs)
      j["attrs"][key] = operand_json(operand);
  }
  return j;
}

/// The ids that an argument reads.
std::vector<int64_t> ids_of(const graph_operand& operand) {
  if (operand.kind == operand_kind::value)
    return {operand.value};
  if (operand.kind == operand_kind::values)
    return operand.list;
  return {};
}

result<void> check_value(const graph_value& value, std::set<std::string>& names) {
  const auto bad = [&](std::string_view why) {
    return fail(errc::invalid_input, fmt::format("graph value {}: {}", value.id, why));
  };
  if (value.id < 0)
    return bad("an id is 0 or more");
  if (value.dtype.empty() || value.dtype.size() > name_bytes_max)
    return bad("dtype is empty or too long");
  if (value.shape.size() > dimensions_max)
    return bad(fmt::format("more than {} dimensions", dimensions_max));
  int64_t elements = 1;
  for (int64_t size : value.shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
      return bad("a size is negative or the shape is too big");
  }
  if (!value.shape_again.empty() && value.shape_again.size() != value.shape.size())
    return bad("the second trace gives it another number of dimensions");
  int64_t elements_again = 1;
  for (int64_t size : value.shape_again) {
    if (size < 0 || __builtin_mul_overflow(elements_again, size, &elements_again))
      return bad("a size of the second trace is negative or its shape is too big");
  }
  if (value.source == graph_source::constant && !value.shape_again.empty()
    && value.shape_again != value.shape)
    return bad("a constant has the same shape in both traces");
  const bool is_named =
    value.source == graph_source::input || value.source == graph_source::scalar_input;
  if (is_named && (value.name.empty() || value.name.size() > name_bytes_max))
    return bad("the name of an input is empty or too long");
  if (is_named && !names.insert(value.name).second)
    return bad(fmt::format("input \"{}\" stands in the graph twice", value.name));
  if (value.source == graph_source::scalar_input && !value.shape.empty())
    return bad("a scalar input has no dimensions");
  if (value.source == graph_source::constant
    && value.constant.size() != static_cast<size_t>(elements))
    return bad("the constant's elements do not fill its shape");
  return {};
}

} // namespace

const graph_value* find_value(const op_graph& graph, int64_t id) {
  const auto found = std::find_if(graph.values.begin(), graph.values.end(),
    [&](const graph_value& value) { return value.id == id; });
  return found == graph.values.end() ? nullptr : &*found;
}

const graph_operand* find_attr(const graph_node& node, std::string_view name) {
  const auto found = std::find_if(
    node.attrs.begin(), node.attrs.end(), [&](const auto& attr) { return attr.first == name; });
  return found == node.attrs.end() ? nullptr : &found->second;
}

result<void> validate(const op_graph& graph) {
  std::unordered_set<int64_t> ids;
  std::unordered_set<int64_t> defined;
  std::set<std::string> names;
  if (graph.axes.size() > axes_max || graph.values.size() > values_max
    || graph.nodes.size() > values_max || graph.outputs.size() > arguments_max)
    return fail(errc::invalid_input, "graph: too many axes, values, nodes or outputs");
  std::set<std::string> axis_names;
  for (const auto& [name, size] : graph.axes) {
    if (name.size() > name_bytes_max || size < 0 || !axis_names.insert(name).second)
      return fail(errc::invalid_input,
        fmt::format(
          "graph axis \"{}\": its size is negative, or its name too long or taken", name));
  }
  if (!graph.axes_again.empty() && graph.axes_again.size() != graph.axes.size())
    return fail(errc::invalid_input,
      fmt::format("graph.axes_again: {} axes, but graph.axes has {}", graph.axes_again.size(),
        graph.axes.size()));
  for (size_t i = 0; i < graph.axes_again.size(); ++i) {
    const auto& [name, size] = graph.axes_again[i];
    if (name != graph.axes[i].first || size < 0)
      return fail(errc::invalid_input,
        fmt::format(
          "graph.axes_again: \"{}\" is not axis {} of graph.axes, or its size is negative", name,
          i));
  }
  for (const auto& value : graph.values) {
    if (value.shape_again.empty() != (graph.axes_again.empty() || value.shape.empty()))
      return fail(errc::invalid_input,
        fmt::format("graph value {}: shape_again belongs to every value of one dimension or more "
                    "when the graph has axes_again, and to none else",
          value.id));
    if (auto checked = check_value(value, names); !checked)
      return checked;
    if (!ids.insert(value.id).second)
      return fail(errc::invalid_input, fmt::format("graph value {}: the id is taken", value.id));
    if (value.source != graph_source::computed)
      defined.insert(value.id);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph_node& node = graph.nodes[n];
    const auto bad = [&](std::string_view why) {
      return fail(errc::invalid_input, fmt::format("graph node {} ({}): {}", n, node.op, why));
    };
    if (node.op.empty() || node.op.size() > name_bytes_max)
      return bad("the operator's name is empty or too long");
    if (node.inputs.size() > arguments_max || node.outputs.size() > arguments_max
      || node.attrs.size() > arguments_max)
      return bad(fmt::format("more than {} arguments or outputs", arguments_max));
    const auto check_operand = [&](const graph_operand& operand) -> result<void> {
      for (int64_t id : ids_of(operand)) {
        if (!defined.contains(id))
          return bad(fmt::format("it reads value {}, which nothing before it defines", id));
      }
      if (operand.kind == operand_kind::scalar_input && operand.text.empty())
        return bad("a scalar input has no name");
      return {};
    };
    for (const auto& operand : node.inputs) {
      if (auto checked = check_operand(operand); !checked)
        return checked;
    }
    for (const auto& [key, operand] : node.attrs) {
      if (auto checked = check_operand(operand); !checked)
        return checked;
    }
    for (int64_t id : node.outputs) {
      if (!ids.contains(id))
        return bad(fmt::format("its output {} is not listed in values", id));
      if (!defined.insert(id).second)
        return bad(fmt::format("its output {} is defined already", id));
    }
  }
  for (int64_t id : graph.outputs) {
    if (!defined.contains(id))
      return fail(errc::invalid_input, fmt::format("graph.outputs: nothing defines value {}", id));
  }
  return {};
}

result<op_graph> parse_op_graph(std::string_view text) {
  const auto document =
    parse_json(text, "graph", {.bytes = text_bytes_max, .depth = depth_max, .keys = values_max});
  if (!document)
    return pass(document);
  op_graph graph;
  try {
    graph = read_graph(*document);
  } catch (const bad_graph& bad) {
    return fail(errc::invalid_input, bad.what);
  } catch (const nlohmann::json::exception& error) {
    return fail(errc::invalid_input, fmt::format("graph: {}", error.what()));
  }
  if (auto checked = validate(graph); !checked)
    return pass(checked);
  return graph;
}

std::string serialise(const op_graph& graph) {
  json j = {{"schema", "gristmill.graph/1"}};
  j["axes"] = json::object();
  for (const auto& [name, size] : graph.axes)
    j["axes"][name] = size;
  if (!graph.axes_again.empty()) {
    j["axes_again"] = json::object();
    for (const auto& [name, size] : graph.axes_again)
      j["axes_again"][name] = size;
  }
  j["values"] = json::array();
  for (const auto& value : graph.values)
    j["values"].push_back(value_json(value));
  j["nodes"] = json::array();
  for (const auto& node : graph.nodes)
    j["nodes"].push_back(node_json(node));
  j["outputs"] = graph.outputs;
  // Names come from strangers: what is not UTF-8 must not throw here.
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string structure_of(const op_graph& graph) {
  op_graph plain = graph;
  std::map<int64_t, int64_t> ids;
  std::map<std::string, std::string> scalars;
  for (size_t i = 0; i < plain.axes.size(); ++i)
    plain.axes[i].first = fmt::format("axis{}", i);
  for (size_t i = 0; i < plain.axes_again.size(); ++i)
    plain.axes_again[i].first = fmt::format("axis{}", i);
  const auto scalar_name = [&](const std::string& name) {
    return scalars.try_emplace(name, fmt::format("scalar{}", scalars.size())).first->second;
  };
  for (size_t i = 0; i < plain.values.size(); ++i) {
    graph_value& value = plain.values[i];
    ids[value.id] = static_cast<int64_t>(i);
    value.id = static_cast<int64_t>(i);
    if (value.source == graph_source::input)
      value.name = fmt::format("input{}", i);
    else if (value.source == graph_source::scalar_input)
      value.name = scalar_name(value.name);
  }
  const auto renumber = [&](graph_operand& operand) {
    if (operand.kind == operand_kind::value)
      operand.value = ids.at(operand.value);
    else if (operand.kind == operand_kind::values)
      std::transform(operand.list.begin(), operand.list.end(), operand.list.begin(),
        [&](int64_t id) { return ids.at(id); });
    else if (operand.kind == operand_kind::scalar_input)
      operand.text = scalar_name(operand.text);
  };
  for (auto& node : plain.nodes) {
    for (auto& operand : node.inputs)
      renumber(operand);
    for (auto& [key, operand] : node.attrs)
      renumber(operand);
    for (auto& id : node.outputs)
      id = ids.at(id);
  }
  for (auto& id : plain.outputs)
    id = ids.at(id);
  return serialise(plain);
}

} // namespace gristmill
