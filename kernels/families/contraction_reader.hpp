#pragma once

#include "kernels/families/contraction.hpp"
#include "kernels/families/size_product.hpp"
#include "kernels/pointwise_operators.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill {

/// A loop index that is never taken apart any further.
struct index_atom {
  size_product size;
  /// In the first trace, and in the second one or 0.
  int64_t traced = 0;
  int64_t again = 0;
};

/// The index along one dimension of a tensor: its atoms as the digits of a number, the outermost
/// first, plus offsets. No atom is the index 0.
struct dim_index {
  std::vector<int> atoms;
  std::vector<size_product> offset;
  /// Of a convolution: atoms * step + taps * dilation - padding.
  std::vector<int> taps;
  int64_t step = 1;
  int64_t dilation = 1;
  int64_t padding = 0;

  bool is_window() const { return !taps.empty() || step != 1 || padding != 0; }
  bool is_plain() const { return offset.empty() && !is_window(); }
};

using composite_index = std::vector<dim_index>;

/// Thrown when an atom must come apart for an index to be said: the whole reading starts again with
/// the two parts.
struct atom_split {
  int atom = 0;
  index_atom outer;
  index_atom inner;
};

/// Follows values of a graph back to inputs, at indices made of atoms. Where it meets the core
/// operator it gives `given` and remembers the index. Every method throws `no_template` or
/// `atom_split`.
class contraction_reader {
public:
  contraction_reader(const problem& target, const op_graph& graph, const size_names& names,
    const graph_node& core, const std::vector<index_atom>& atoms, contraction& out);

  /// The node that computes the element of a value at an index.
  int read(int64_t id, const composite_index& index);

  /// While operands are read there must be no core in the way.
  void leave_epilogue() { is_epilogue_ = false; }
  bool has_core_index() const { return has_core_index_; }
  /// Of the core's result.
  const composite_index& core_index() const { return core_index_; }
  /// One for each load: the index that it was read at.
  const std::vector<composite_index>& load_indices() const { return load_indices_; }

  const graph_value& value(int64_t id) const { return *values_.at(id); }
  /// Size of a dimension of a value: by its label where the value is an input.
  size_product dim_size(const graph_value& what, size_t dim) const;
  index_atom atom_of(const graph_value& what, size_t dim) const;
  [[noreturn]] void ask_split(int atom, const index_atom& outer) const;
  [[noreturn]] void ask_split(int atom, int64_t outer, int64_t outer_again) const;

private:
  struct place {
    const graph_node* node = nullptr;
    size_t output = 0;
  };

  int read_value(const graph_value& what, const composite_index& index);
  int read_input(const graph_value& what, const composite_index& index);
  int read_core(const graph_value& what, const composite_index& index);
  int read_view(const place& from, const graph_value& what, const composite_index& index);
  int read_reshape(const graph_node& node, const graph_value& base, const graph_value& what,
    const composite_index& index);
  int read_operand(
    const graph_operand& operand, const graph_value& result, const composite_index& index);
  int rounded(const graph_node& node, const graph_value& what, int number);
  /// alpha or beta of `addmm` and its kin; 1 where it is not said.
  int factor(std::string_view name, int node);
  void check_full(const graph_value& what, size_t dim, const dim_index& index) const;

  const definition& def_;
  const op_graph& graph_;
  const size_names& names_;
  const graph_node& core_;
  const std::vector<index_atom>& atoms_;
  contraction& out_;
  ir_builder build_;
  std::unordered_map<int64_t, place> places_;
  std::unordered_map<int64_t, const graph_value*> values_;
  std::map<std::pair<int64_t, std::string>, int> known_;
  std::vector<composite_index> load_indices_;
  composite_index core_index_;
  bool has_core_index_ = false;
  bool is_epilogue_ = true;
  size_t depth_ = 0;
};

/// A text that is equal for equal indices.
std::string text_of(const composite_index& index);

} // namespace gristmill
