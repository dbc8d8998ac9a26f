#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// How a value of the graph comes to be.
enum class graph_source : uint8_t {
  /// An output of a node.
  computed = 0,
  /// A tensor input of the definition; `graph_value::name` is its name there.
  input,
  /// A null-shape input of the definition that the reference turned into a 0-d tensor.
  scalar_input,
  /// A tensor that the reference holds itself; `graph_value::constant` are its elements.
  constant,
};

/// One tensor of the trace.
struct graph_value {
  /// Unique in the graph, 0 or more; ids need not be dense.
  int64_t id = 0;
  /// As torch calls it without the prefix: "float32", "bfloat16", "bool", "int64", "uint8", …
  std::string dtype;
  /// The tiny shape it had while the reference was traced.
  std::vector<int64_t> shape;
  /// The shape it had in a second trace with the sizes of `op_graph::axes_again`; empty when there
  /// was none (and for a tensor of no dimensions).
  std::vector<int64_t> shape_again;
  graph_source source = graph_source::computed;
  std::string name;
  /// Row-major elements of a constant; numbers stand for integers and bools (0, 1) too.
  std::vector<double> constant;

  friend bool operator==(const graph_value&, const graph_value&) = default;
};

/// What an argument of an operator is.
enum class operand_kind : uint8_t {
  /// Python's None. JSON: null.
  none = 0,
  /// A tensor. JSON: {"value": 3}.
  value,
  /// A list of tensors, such as the first argument of `cat`. JSON: {"values": [1, 2]}.
  values,
  /// A null-shape input of the definition, used as a number. JSON: {"scalar_input": "eps"}.
  scalar_input,
  /// A float. JSON: 1.5; those that JSON lacks: {"number": "inf"}, "-inf", "nan".
  number,
  /// An int. JSON: 3.
  integer,
  /// JSON: true, false.
  boolean,
  /// A list of ints, such as a shape or dims; may be empty. JSON: [7, 7].
  integers,
  /// A list of floats with at least one that is no int. JSON: [0.5, 2.0].
  numbers,
  /// A dtype ("bfloat16"), a memory format, an `approximate="tanh"`. JSON: "bfloat16".
  text,
};

/// One argument. Only the field that `kind` names is meaningful.
struct graph_operand {
  operand_kind kind = operand_kind::none;
  /// `value`: the id.
  int64_t value = 0;
  /// `integer` and `boolean` (0, 1).
  int64_t integer = 0;
  double number = 0;
  /// `values` (ids) and `integers`.
  std::vector<int64_t> list;
  std::vector<double> numbers;
  /// `text`, and the name of a `scalar_input`.
  std::string text;
  /// For `number` and `integer`: a second trace with other axis sizes or other scalar inputs gave
  /// another number, so this one stands for something that depends on the shape or on a scalar
  /// input. JSON: {"number": 0.353, "varies": true} or {"integer": 7, "varies": true}.
  bool varies = false;
  /// With `varies`: the number in the second trace, of the kind that `kind` says. JSON: "again"
  /// beside "varies".
  std::optional<int64_t> integer_again;
  std::optional<double> number_again;

  friend bool operator==(const graph_operand&, const graph_operand&) = default;
};

/// One operator call.
struct graph_node {
  /// The aten name without namespace and overload: "mul", "_softmax", "native_layer_norm". An
  /// in-place operator keeps its trailing underscore and its output is a new value.
  std::string op;
  /// Positional arguments in the operator's own order. The list of tensors of `index` and its kin
  /// starts at the first dimension that is indexed; the attribute "first_dim" (absent: 0) tells it.
  std::vector<graph_operand> inputs;
  /// Ids of the results, in order; an id stands in the outputs of exactly one node.
  std::vector<int64_t> outputs;
  /// Keyword arguments in order of appearance, such as {"dtype", "float32"}.
  std::vector<std::pair<std::string, graph_operand>> attrs;

  friend bool operator==(const graph_node&, const graph_node&) = default;
};

/// What the reference of a problem does, as the operators it calls on tiny inputs. The only thing
/// that templates match on: names of problems and tensors decide nothing.
///
/// The tracer gives var axes distinct primes where it can, so that a size in an argument (`view`,
/// `slice`) can be led back to its axis.
struct op_graph {
  /// Name and traced size of every axis (const, var and expr), in order of the definition.
  std::vector<std::pair<std::string, int64_t>> axes;
  /// The same axes in a second trace, where every variable one has another size, so that a formula
  /// for a size can be tried on two traces. Empty when there was none.
  std::vector<std::pair<std::string, int64_t>> axes_again;
  /// Inputs first, in order of the definition, then the others in order of creation.
  std::vector<graph_value> values;
  std::vector<graph_node> nodes;
  /// One id for each declared output, in declared order.
  std::vector<int64_t> outputs;

  friend bool operator==(const op_graph&, const op_graph&) = default;
};

/// The value with that id, or null.
const graph_value* find_value(const op_graph& graph, int64_t id);

/// The keyword argument of that name, or null.
const graph_operand* find_attr(const graph_node& node, std::string_view name);

/// Reads schema "gristmill.graph/1":
///
/// ```json
/// { "schema": "gristmill.graph/1",
///   "axes": {"M": 3, "D": 14, "d": 7},
///   "values": [ {"id": 0, "dtype": "bfloat16", "shape": [3, 14], "input": "x"},
///               {"id": 1, "dtype": "float32", "shape": [], "scalar_input": "eps"},
///               {"id": 2, "dtype": "float32", "shape": [2], "constant": [0.5, 2.0]},
///               {"id": 3, "dtype": "float32", "shape": [3, 14]} ],
///   "nodes": [ {"op": "_to_copy", "inputs": [{"value": 0}], "outputs": [3], "attrs": {"dtype":
///   "float32"}} ], "outputs": [3] }
/// ```
///
/// Every value of a node's inputs must be an input, a scalar input, a constant or the output of an
/// earlier node. Where the reference was traced a second time the graph has "axes_again" beside
/// "axes", with the same names, and every value of one dimension or more has "shape_again". Bounds:
/// 1 MiB of text, 64 axes, 4,096 values and nodes, 64 arguments a node, 8 dimensions, 64 elements a
/// constant, 1,024 a list. Errors: `invalid_input` naming the field.
result<op_graph> parse_op_graph(std::string_view text);

/// Canonical JSON: parsing it gives an equal graph, and equal graphs give equal bytes.
std::string serialise(const op_graph& graph);

/// The rules that `parse_op_graph` holds a graph to; for graphs made in the program.
result<void> validate(const op_graph& graph);

/// A text that is equal for two valid graphs iff they are the same but for how their axes, inputs,
/// scalar inputs and ids are called. Positions count: the second input stays the second input.
std::string structure_of(const op_graph& graph);

} // namespace gristmill
