#pragma once

#include "kernels/families/index_pool.hpp"
#include "kernels/families/kernel_parameters.hpp"
#include "kernels/pointwise_operators.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

/// What a value of the graph is in a generated kernel: a float, an int64_t or a bool.
enum class number_kind : uint8_t { truth, integer, number };

/// The kind that a torch dtype is computed with. Throws `no_template` for those that no family
/// computes with, such as float64.
number_kind kind_of(std::string_view torch_dtype);

/// A value as C++ text: a name or a literal.
struct written_value {
  std::string text;
  number_kind kind = number_kind::number;
};

std::string converted(const written_value& value, number_kind kind);

/// Writes C++ statements that compute single elements of a graph's values at symbolic indices.
///
/// Views, concatenations, paddings and gathers become index arithmetic; arithmetic becomes
/// statements, with a rounding wherever the reference holds a value in 16 bits. What one scope has
/// computed is used again in it and in the scopes inside. Every method throws `no_template`.
class value_writer {
public:
  value_writer(const problem& target, const op_graph& graph, const size_formulas& sizes);

  index_pool& pool() { return pool_; }
  kernel_parameters& parameters() { return parameters_; }
  const size_formulas& sizes() const { return sizes_; }

  const graph_value& value(int64_t id) const { return *values_.at(id); }
  /// The node that computes a value and which of its outputs it is; null for a leaf.
  std::pair<const graph_node*, size_t> origin(int64_t id) const;

  /// The element of a value at an index.
  written_value read(int64_t id, const std::vector<index_id>& index);
  /// An operand of a node at the index of the node's result: broadcast, number or scalar.
  written_value read_operand(
    const graph_operand& operand, const graph_value& result, const std::vector<index_id>& index);
  /// The value as text of another kind.
  std::string read_as(int64_t id, const std::vector<index_id>& index, number_kind kind) {
    return converted(read(id, index), kind);
  }

  /// Asked before a node is read; gives the value of what a template computes itself, such as a
  /// reduction.
  using node_hook = std::function<std::optional<written_value>(
    const graph_node& node, size_t output, const std::vector<index_id>& index)>;
  void set_hook(node_hook hook) { hook_ = std::move(hook); }

  /// Asked before an element of an input of the definition is read from memory.
  using input_hook =
    std::function<std::optional<written_value>(size_t input, const std::vector<index_id>& index)>;
  void set_input_hook(input_hook hook) { input_hook_ = std::move(hook); }

  /// One line in the current block.
  void line(const std::string& text);
  /// "head {" and a scope of its own until `close`.
  void open(const std::string& head);
  void close();
  /// A name that nothing in the source has yet.
  std::string fresh(std::string_view stem);
  std::string text(index_id id);
  /// Row-major position in a tensor of the definition.
  std::string address(const tensor_spec& spec, const std::vector<index_id>& index);
  /// The value of that kind as a float rounded to a torch dtype.
  written_value rounded(std::string_view torch_dtype, const written_value& value);
  /// The statement that writes an output's element.
  void store(size_t output, const std::string& position, const written_value& value);

  /// Everything written so far; the next line begins a new text.
  std::string take();
  /// What scopes know is forgotten: the statements of a new function begin.
  void forget();

  /// The size of a dimension of an input of the definition.
  index_id input_dim(const tensor_spec& spec, size_t dim);
  std::vector<index_id> input_shape(const tensor_spec& spec);

  /// Includes, `index_t`, helper functions and tables that the parameters and the body need.
  std::string preamble(const std::string& body) const;
  /// Plan expression that is true when 32-bit indices do not suffice.
  std::string wide_expression() const;

  /// Tables of constants that another kernel of the same source needs.
  void take_tables(const value_writer& other) {
    tables_.insert(other.tables_.begin(), other.tables_.end());
  }

  struct snapshot;
  /// State to come back to when an attempt to write something fails.
  snapshot save() const;
  void restore(const snapshot& saved);

private:
  using place = std::pair<int64_t, std::vector<index_id>>;
  using scope = std::map<place, written_value>;
  using index_list = std::vector<index_id>;

  written_value read_fresh(const graph_value& what, const index_list& index);
  written_value read_input(const graph_value& what, const index_list& index);
  written_value read_constant(const graph_value& what, const index_list& index);
  written_value read_node(
    const graph_node& node, size_t output, const graph_value& what, const index_list& index);
  /// Operators that only move elements; nothing when the operator is none.
  std::optional<written_value> read_moved(
    const graph_node& node, size_t output, const graph_value& what, const index_list& index);
  std::optional<written_value> read_joined(
    const graph_node& node, const graph_value& what, const index_list& index);
  std::optional<written_value> read_gathered(
    const graph_node& node, const graph_value& what, const index_list& index);
  std::optional<written_value> read_made(
    const graph_node& node, const graph_value& what, const index_list& index);
  std::optional<written_value> read_window(
    const graph_node& node, size_t output, const graph_value& what, const index_list& index);
  written_value read_pad(const graph_node& node, const graph_value& what, const index_list& index);
  written_value read_pointwise(
    const graph_node& node, const graph_value& what, const index_list& index);
  /// A value that one of several branches gives: declares it and returns its name.
  written_value declared(std::string_view dtype);
  written_value named(std::string_view stem, const written_value& value);
  index_id slice_start(const graph_node& node, const graph_value& base, const graph_value& what,
    size_t dim, size_t position);
  const graph_value& tensor(const graph_node& node, size_t position) const;
  /// A size or a position in an argument that changed between the traces.
  std::optional<std::string> formula_of(const graph_operand& operand) const;
  std::vector<size_pair> shape_of(const graph_value& what) const { return traced_shape(what); }

  const problem& target_;
  const op_graph& graph_;
  const size_formulas& sizes_;
  index_pool pool_;
  kernel_parameters parameters_;
  std::unordered_map<int64_t, const graph_value*> values_;
  std::unordered_map<int64_t, std::pair<const graph_node*, size_t>> origins_;
  node_hook hook_;
  input_hook input_hook_;
  std::vector<scope> scopes_{1};
  std::string code_;
  int names_ = 0;
  size_t depth_ = 0;
  std::vector<std::string> extents_;
  std::map<int64_t, std::string> tables_;
};

struct value_writer::snapshot {
  std::vector<scope> scopes;
  std::string code;
  int names = 0;
  size_t depth = 0;
};

// Arguments of nodes.

/// A positional argument, or the keyword argument of that name; null when there is none or it is
/// None.
const graph_operand* argument_of(const graph_node& node, size_t position, std::string_view keyword);
int64_t integer_argument(
  const graph_node& node, size_t position, std::string_view keyword, int64_t fallback);
/// A dimension counted from the front. Throws `no_template`.
size_t front_dimension(const graph_node& node, int64_t dim, size_t dimensions);
[[noreturn]] void refuse_node(const graph_node& node, std::string_view why);
/// The name without the underscore of an in-place operator.
std::string_view plain_op(std::string_view op);

/// True for an operator that `value_writer` reads itself.
bool is_written_operator(std::string_view op);

} // namespace gristmill
