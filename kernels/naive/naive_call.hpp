#pragma once

#include "kernels/naive/naive_writer.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One operator call while its kernel is written: the arguments in the words of the operator's
/// schema. Arguments are counted from 0 and may be passed by position or by name; every method
/// throws `no_template` where an argument is missing or of another kind.
class naive_call {
public:
  naive_call(naive_writer& writer, const graph_node& node, size_t output);

  naive_writer& w;
  const graph_node& node;
  /// Which of the operator's results is asked for.
  size_t output = 0;

  /// The operator's name without the underscore of the in-place form.
  std::string op() const;
  [[noreturn]] void refuse(const std::string& why) const;

  /// The argument at that place or of that name; null where it is absent or None.
  const graph_operand* find(size_t place, std::string_view name = {}) const;
  bool has(size_t place, std::string_view name = {}) const { return find(place, name) != nullptr; }

  /// Id of a tensor argument.
  int64_t tensor(size_t place, std::string_view name = {}) const;
  bool is_tensor(size_t place, std::string_view name = {}) const;
  std::vector<int64_t> tensors(size_t place) const;
  int64_t integer(size_t place, std::string_view name, int64_t fallback) const;
  bool flag(size_t place, std::string_view name, bool fallback) const;
  std::string text(size_t place, std::string_view name) const;
  /// A list of integers; a single one counts as a list of one; empty where absent.
  std::vector<int64_t> integers(size_t place, std::string_view name = {}) const;
  /// The same with one entry for each of `count` dimensions: a single entry stands for all of them,
  /// none for `fallback`.
  std::vector<int64_t> integers_for(
    size_t place, std::string_view name, size_t count, int64_t fallback) const;
  /// An integer that may follow the shape.
  naive_size amount(size_t place, std::string_view name, int64_t fallback) const;

  const graph_value& value(int64_t id) const { return w.value(id); }
  const graph_value& result() const { return w.value(node.outputs.at(output)); }
  size_t rank(int64_t id) const { return w.value(id).shape.size(); }
  /// A dimension counted from the front, for a tensor of so many dimensions.
  size_t dimension(int64_t dim, size_t dimensions) const;
  std::vector<size_t> dimensions(const std::vector<int64_t>& dims, size_t dimensions) const;

  /// The register type of the result.
  std::string type() const { return w.type_of(node.outputs.at(output)); }
  /// An element of a tensor argument, as an expression of that C++ type.
  std::string read(int64_t id, const naive_index& index, std::string_view type) const;
  /// A tensor argument aligned with the result at its last dimension, or a number.
  std::string aligned(const graph_operand& operand, const std::vector<int64_t>& result_shape,
    const naive_index& index, std::string_view type) const;
  /// The same for the argument at that place; `fallback` is a literal for one that is absent.
  std::string argument(size_t place, std::string_view name, const naive_index& index,
    std::string_view type, const std::string& fallback = {}) const;
  /// A number argument as C++ text.
  std::string number(
    size_t place, std::string_view name, std::string_view type, double fallback) const;
  /// The C++ type that the tensor and number arguments share, as torch promotes them: what a
  /// comparison compares.
  std::string common_type(size_t first, size_t count) const;
};

/// The index with a dimension's entry replaced.
naive_index replaced(naive_index index, size_t dim, const std::string& by);
/// The index without an entry, and with one more.
naive_index without(naive_index index, size_t dim);
naive_index inserted(naive_index index, size_t dim, const std::string& entry);

} // namespace gristmill
