#pragma once

#include "kernels/kernel_ir.hpp"
#include "kernels/pointwise_operators.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

/// Index of one element of a tensor, a term for each dimension.
using index_map = std::vector<index_term>;

/// Operators that only say where an element lies.
bool is_view_operator(std::string_view op);

/// Operators that `graph_reader` turns into a reduction over a row.
bool is_row_operator(std::string_view op);

/// Follows values of a graph back to the inputs. Works on a kernel whose space is set; every method
/// throws `no_template`.
class graph_reader {
public:
  graph_reader(const op_graph& graph, const definition& def, fused_kernel& kernel);

  /// The node that computes the element of a value at an index.
  int read(int64_t id, const index_map& index);

  /// The node whose sum over all rows is an output of one element a column.
  int read_column_sum(int64_t id, dtype type);

  /// `ir_builder::take_factors_out`.
  void take_factors_out() { build_.take_factors_out(); }

  /// The index of the element itself in a tensor of the whole space.
  index_map identity() const;
  /// The same with the last dimension left out of the count, for tensors with one element a row.
  index_map row_identity(size_t dimensions) const;

private:
  struct place {
    const graph_node* node = nullptr;
    size_t output = 0;
  };

  const graph_value& value(int64_t id) const;
  const graph_value& tensor(const graph_node& node, size_t position) const;
  int read_value(const graph_value& what, const index_map& index);
  int read_input(const graph_value& what, const index_map& index);
  int read_node(const place& from, const graph_value& what, const index_map& index);
  int read_view(const place& from, const graph_value& what, const index_map& index);
  int read_row(const place& from, const graph_value& what, const index_map& index);
  int read_softmax(const graph_node& node, const index_map& index);
  int read_layer_norm(const place& from, const index_map& index);
  int read_variance(const graph_node& node, int body);
  int read_operand(const graph_operand& operand, const graph_value& result, const index_map& index);
  int rounded(const graph_node& node, const graph_value& what, int number);

  /// The body of a reduction, as a function of the row's element; checks that it is our row.
  int row_body(const graph_node& node, const graph_value& reduced, bool keeps_dim,
    const index_map& index, bool index_is_element);
  int mean_of(int body);
  /// A size or position in an argument as a plan expression.
  std::string recover(const graph_node& node, int64_t number, bool varies) const;
  [[noreturn]] static void refuse(const graph_node& node, std::string_view why);

  const op_graph& graph_;
  const definition& def_;
  fused_kernel& kernel_;
  ir_builder build_;
  std::unordered_map<int64_t, place> places_;
  std::unordered_map<int64_t, const graph_value*> values_;
  std::map<std::pair<int64_t, index_map>, int> known_;
  size_t depth_ = 0;
};

} // namespace gristmill
