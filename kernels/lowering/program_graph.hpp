#pragma once

#include "kernels/lowering/symbolic_shape.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gristmill {

/// Operators whose result holds the same elements in the same order under another shape, so that
/// a contiguous operand and the result are one buffer.
bool is_reshape_operator(std::string_view op);

/// The tensors that an operator reads, in order of its arguments, with repetition.
std::vector<int64_t> operands_of(const graph_node& node);

/// A graph in the form that a program is cut out of:
///
/// - every node is needed by an output;
/// - an in-place operator is the plain one ("add_" is "add"; "copy_" is a cast of its source,
/// spread
///   to the shape of what it overwrites; "fill_" and "zero_" likewise);
/// - every output has a buffer of its own: one that is an input, a constant, or another output
/// under
///   another shape ends in a `clone`.
op_graph normalised_graph(const op_graph& graph);

/// A normalised graph with the sizes of its values and an index. Not copied and not moved.
class program_graph {
public:
  /// Errors as for `infer_shapes`. `target` must outlive the value.
  static result<std::unique_ptr<const program_graph>> make(
    const problem& target, const op_graph& graph);

  const problem& target() const { return target_; }
  const op_graph& graph() const { return graph_; }
  const std::vector<std::string>& conditions() const { return shapes_.conditions; }

  const graph_value& value(int64_t id) const { return *values_.at(id); }
  const std::vector<symbolic_size>& sizes(int64_t id) const { return shapes_.of.at(id); }
  /// Place of the node that computes a value; nothing for inputs and constants.
  std::optional<size_t> producer(int64_t id) const;
  const graph_node& node(size_t index) const { return graph_.nodes[index]; }

  /// The value whose buffer holds `id`, looking through reshapes; `id` itself where none is.
  int64_t base(int64_t id) const;
  /// The output of the definition whose buffer the value has.
  std::optional<size_t> output_of(int64_t base) const;

  /// What a definition calls a size: digits, an axis, or an expression axis of our own.
  result<std::string> label(const symbolic_size& size) const;

  /// An expression axis that the definition of a stage may have beside the problem's.
  struct extra_axis {
    std::string name;
    symbolic_size size;
    std::string expression;
    int64_t traced = 0;
    int64_t traced_again = 0;
  };
  /// By `symbolic_size::plan_text`.
  const std::map<std::string, extra_axis>& extra_axes() const { return extra_; }

private:
  program_graph(const problem& target, op_graph graph)
    : target_(target), graph_(std::move(graph)) {}
  result<void> index();

  const problem& target_;
  op_graph graph_;
  symbolic_shapes shapes_;
  std::unordered_map<int64_t, const graph_value*> values_;
  std::unordered_map<int64_t, size_t> producers_;
  std::unordered_map<int64_t, size_t> outputs_;
  std::map<std::string, extra_axis> extra_;
};

} // namespace gristmill
