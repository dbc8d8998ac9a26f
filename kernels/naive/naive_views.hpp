#pragma once

#include "kernels/naive/naive_sizes.hpp"
#include "protocol/op_graph.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace gristmill {

class naive_writer;

/// Operators that only say where an element lies; the naive family follows all of them.
const std::vector<std::string_view>& naive_view_operators();
bool is_naive_view(std::string_view op);

/// The shape of a view's result, from the shape of what it views; nothing for an operator that is
/// no view, or whose shape only the trace tells. Throws `no_template`.
std::optional<std::vector<naive_size>> naive_view_shape(
  const graph_node& node, const op_graph& graph, const graph_value& result, naive_sizes& sizes);

/// The element of a view's result at an index, as C++ text of the register type.
std::string read_naive_view(naive_writer& writer, const graph_node& node, size_t output,
  const graph_value& result, const std::vector<std::string>& index);

} // namespace gristmill
