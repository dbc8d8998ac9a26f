#include "kernels/naive/naive_views.hpp"

#include "kernels/naive/naive_call.hpp"
#include "kernels/naive/naive_writer.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// Positions further out stand for "as far as there is".
constexpr int64_t number_max = int64_t{1} << 40;

/// Views that keep the row-major order of the elements.
bool is_reshape(std::string_view op) {
  return op == "view" || op == "_unsafe_view" || op == "reshape" || op == "_reshape_alias"
    || op == "flatten" || op == "unflatten" || op == "view_as" || op == "reshape_as";
}

bool is_same(std::string_view op) {
  return op == "detach" || op == "alias" || op == "lift_fresh" || op == "lift";
}

size_t place_of(const graph_node& node, int64_t dim, size_t dimensions) {
  const auto count = static_cast<int64_t>(std::max<size_t>(dimensions, 1));
  const int64_t from_front = dim < 0 ? dim + count : dim;
  if (from_front < 0 || from_front >= count)
    throw no_template{fmt::format(
      "operator '{}' names dimension {} of a tensor with {}", node.op, dim, dimensions)};
  return static_cast<size_t>(from_front);
}

const graph_operand* argument_at(const graph_node& node, size_t place, std::string_view name) {
  const graph_operand* found =
    place < node.inputs.size() ? &node.inputs[place] : find_attr(node, name);
  return found == nullptr || found->kind == operand_kind::none ? nullptr : found;
}

int64_t integer_at(const graph_node& node, size_t place, std::string_view name, int64_t fallback) {
  const graph_operand* found = argument_at(node, place, name);
  if (found == nullptr)
    return fallback;
  if (found->kind != operand_kind::integer || found->varies)
    throw no_template{
      fmt::format("operator '{}' needs a constant integer as its argument {}", node.op, place)};
  return found->integer;
}

/// The first element that a slice, select or narrow takes of its dimension.
naive_size start_of(const graph_node& node, size_t place, std::string_view name,
  const naive_size& whole, naive_sizes& sizes) {
  const graph_operand* found = argument_at(node, place, name);
  if (found == nullptr)
    return naive_constant(0);
  if (found->kind != operand_kind::integer)
    throw no_template{
      fmt::format("operator '{}' begins where a tensor says, which only the data tell", node.op)};
  if (found->integer < -number_max)
    throw no_template{fmt::format("operator '{}' begins too far before its tensor", node.op)};
  const naive_size number = sizes.integer(node.op, found->integer, found->varies);
  if (found->integer >= 0)
    return number;
  const naive_size from_end = whole - sizes.integer(node.op, -found->integer, found->varies);
  // A slice that begins before the tensor begins with it; a selection there is an error.
  if (node.op != "slice" || whole == naive_constant(whole.traced))
    return from_end.traced < 0 ? naive_constant(0) : from_end;
  return {fmt::format("max(0, {})", from_end.plan), std::max<int64_t>(from_end.traced, 0)};
}

/// The sizes of the parts before the given one, summed.
naive_size part_start(const graph_node& node, size_t output, size_t dim, naive_sizes& sizes) {
  naive_size start = naive_constant(0);
  for (size_t i = 0; i < output; ++i)
    start = start + sizes.shape(node.outputs[i]).at(dim);
  return start;
}

std::vector<size_t> squeezed_dims(const graph_node& node, const graph_value& base) {
  std::vector<size_t> dims;
  if (node.inputs.size() < 2) {
    for (size_t i = 0; i < base.shape.size(); ++i) {
      if (base.shape[i] == 1)
        dims.push_back(i);
    }
    return dims;
  }
  std::vector<int64_t> named = node.inputs[1].kind == operand_kind::integers
    ? node.inputs[1].list
    : std::vector<int64_t>{integer_at(node, 1, "dim", 0)};
  for (int64_t dim : named) {
    const size_t at = place_of(node, dim, base.shape.size());
    if (at < base.shape.size() && base.shape[at] == 1)
      dims.push_back(at);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::vector<size_t> permutation(const graph_node& node, size_t dimensions) {
  std::vector<size_t> order;
  if (node.op == "permute") {
    if (node.inputs.size() < 2 || node.inputs[1].list.size() != dimensions)
      throw no_template{"operator 'permute' has no list of all dimensions"};
    for (int64_t dim : node.inputs[1].list)
      order.push_back(place_of(node, dim, dimensions));
    return order;
  }
  for (size_t i = 0; i < dimensions; ++i)
    order.push_back(i);
  if (node.op == "t" && dimensions < 2)
    return order;
  const size_t a = place_of(node, node.op == "t" ? 0 : integer_at(node, 1, "dim0", 0), dimensions);
  const size_t b = place_of(node, node.op == "t" ? 1 : integer_at(node, 2, "dim1", 0), dimensions);
  if (dimensions > 0)
    std::swap(order.at(a), order.at(b));
  return order;
}

bool is_permutation(std::string_view op) {
  return op == "permute" || op == "transpose" || op == "t" || op == "swapaxes" || op == "swapdims";
}

bool is_split(std::string_view op) {
  return op == "split" || op == "split_with_sizes" || op == "chunk";
}

/// Dimension, start and step of a slice-like view.
struct slice_parts {
  size_t dim = 0;
  naive_size start;
  int64_t step = 1;
};

slice_parts slice_of(
  const graph_node& node, const std::vector<naive_size>& base, size_t output, naive_sizes& sizes) {
  slice_parts parts;
  if (is_split(node.op)) {
    parts.dim = place_of(node, integer_at(node, 2, "dim", 0), base.size());
    parts.start = part_start(node, output, parts.dim, sizes);
    return parts;
  }
  parts.dim = place_of(node, integer_at(node, 1, "dim", 0), base.size());
  parts.start = start_of(node, 2, "start", base.at(parts.dim), sizes);
  if (node.op == "slice")
    parts.step = integer_at(node, 4, "step", 1);
  if (parts.step < 1)
    throw no_template{"operator 'slice' has a step below 1"};
  return parts;
}

/// How many elements a slice takes; nothing when only the trace tells.
std::optional<naive_size> slice_length(
  const graph_node& node, const slice_parts& parts, const naive_size& whole, naive_sizes& sizes) {
  if (node.op == "narrow") {
    const graph_operand* length = argument_at(node, 3, "length");
    if (length == nullptr || length->kind != operand_kind::integer)
      return std::nullopt;
    return sizes.integer(node.op, length->integer, length->varies);
  }
  naive_size end = whole;
  if (const graph_operand* last = argument_at(node, 3, "end"); last != nullptr) {
    if (last->kind != operand_kind::integer)
      return std::nullopt;
    // Where the traced end lies past the whole, so it does at every size: the rest is taken.
    if (last->integer < -number_max)
      return std::nullopt;
    if (last->integer < 0)
      end = whole - sizes.integer(node.op, -last->integer, last->varies);
    else if (last->integer < number_max && last->integer != whole.traced)
      end = {fmt::format(
               "min({}, {})", sizes.integer(node.op, last->integer, last->varies).plan, whole.plan),
        std::min(last->integer, whole.traced)};
    else if (last->integer == whole.traced && !last->varies)
      end = naive_constant(last->integer);
  }
  if (end.plan == naive_constant(end.traced).plan && !(whole == naive_constant(whole.traced)))
    end = {fmt::format("min({}, {})", end.plan, whole.plan), std::min(end.traced, whole.traced)};
  const naive_size length = end - parts.start;
  if (parts.step == 1)
    return length;
  return naive_size{fmt::format("ceil_div({}, {})", length.plan, parts.step),
    (length.traced + parts.step - 1) / parts.step};
}

} // namespace

const std::vector<std::string_view>& naive_view_operators() {
  static const std::vector<std::string_view> list = {"view", "_unsafe_view", "reshape",
    "_reshape_alias", "flatten", "unflatten", "view_as", "reshape_as", "detach", "alias",
    "lift_fresh", "lift", "unsqueeze", "squeeze", "expand", "expand_as", "broadcast_to", "slice",
    "split", "split_with_sizes", "chunk", "narrow", "select", "unbind", "permute", "transpose", "t",
    "swapaxes", "swapdims", "diagonal", "unfold", "as_strided"};
  return list;
}

bool is_naive_view(std::string_view op) {
  const auto& list = naive_view_operators();
  return std::find(list.begin(), list.end(), op) != list.end();
}

std::optional<std::vector<naive_size>> naive_view_shape(
  const graph_node& node, const op_graph& graph, const graph_value& result, naive_sizes& sizes) {
  if (!is_naive_view(node.op) || node.inputs.empty() || node.inputs[0].kind != operand_kind::value)
    return std::nullopt;
  const graph_value* base = find_value(graph, node.inputs[0].value);
  if (base == nullptr)
    return std::nullopt;
  const std::string_view op = node.op;
  std::vector<naive_size> from = sizes.shape(base->id);
  if (is_same(op))
    return from;
  if (is_permutation(op)) {
    std::vector<naive_size> shape;
    for (size_t dim : permutation(node, from.size()))
      shape.push_back(from.at(dim));
    return shape;
  }
  if (op == "unsqueeze") {
    const size_t at = place_of(node, integer_at(node, 1, "dim", 0), from.size() + 1);
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(at), naive_constant(1));
    return from;
  }
  if (op == "squeeze") {
    const auto dims = squeezed_dims(node, *base);
    for (size_t i = dims.size(); i-- > 0;)
      from.erase(from.begin() + static_cast<std::ptrdiff_t>(dims[i]));
    return from;
  }
  if (op == "select" || op == "unbind") {
    const size_t at = place_of(node, integer_at(node, 1, "dim", 0), from.size());
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return from;
  }
  if (op == "slice" || op == "narrow") {
    const slice_parts parts = slice_of(node, from, 0, sizes);
    const auto length = slice_length(node, parts, from[parts.dim], sizes);
    // A start or an end that only one of the traces reaches tells nothing.
    if (!length || length->traced != result.shape.at(parts.dim))
      return std::nullopt;
    from[parts.dim] = *length;
    return from;
  }
  return std::nullopt;
}

std::string read_naive_view(naive_writer& writer, const graph_node& node, size_t output,
  const graph_value& result, const std::vector<std::string>& index) {
  const naive_call call(writer, node, output);
  const int64_t base = call.tensor(0);
  const graph_value& from = writer.value(base);
  const std::string_view op = node.op;
  if (is_same(op))
    return writer.read(base, index);
  if (is_reshape(op))
    return writer.read_linear(
      base, writer.let("int64_t", writer.linear(writer.shape(result.id), index)));
  if (is_permutation(op)) {
    const auto order = permutation(node, from.shape.size());
    naive_index inner(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      inner.at(order[i]) = index.at(i);
    return writer.read(base, inner);
  }
  if (op == "expand" || op == "expand_as" || op == "broadcast_to") {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = base;
    return call.aligned(operand, result.shape, index, writer.type_of(base));
  }
  if (op == "unsqueeze")
    return writer.read(
      base, without(index, place_of(node, integer_at(node, 1, "dim", 0), from.shape.size() + 1)));
  if (op == "squeeze") {
    naive_index inner = index;
    for (size_t dim : squeezed_dims(node, from))
      inner = inserted(inner, dim, "int64_t(0)");
    return writer.read(base, inner);
  }
  auto& sizes = writer.sizes();
  if (op == "select" || op == "unbind") {
    const size_t dim = place_of(node, integer_at(node, 1, "dim", 0), from.shape.size());
    const naive_size at = op == "unbind"
      ? naive_constant(static_cast<int64_t>(output))
      : start_of(node, 2, "index", sizes.shape(base).at(dim), sizes);
    return writer.read(base, inserted(index, dim, writer.amount(at)));
  }
  if (op == "slice" || op == "narrow" || is_split(op)) {
    const slice_parts parts = slice_of(node, sizes.shape(base), output, sizes);
    std::string at = index.at(parts.dim);
    if (parts.step != 1)
      at = fmt::format("{} * int64_t({})", at, parts.step);
    if (parts.start.plan != "0")
      at = fmt::format("({} + {})", at, writer.amount(parts.start));
    return writer.read(base, replaced(index, parts.dim, at));
  }
  if ((op == "diagonal" || op == "unfold") && index.empty())
    call.refuse("has a result without dimensions");
  if (op == "diagonal") {
    const int64_t offset = integer_at(node, 1, "offset", 0);
    const size_t first = place_of(node, integer_at(node, 2, "dim1", 0), from.shape.size());
    const size_t second = place_of(node, integer_at(node, 3, "dim2", 1), from.shape.size());
    const std::string& last = index.back();
    naive_index outer(index.begin(), index.end() - 1);
    naive_index inner;
    size_t next = 0;
    for (size_t i = 0; i < from.shape.size(); ++i) {
      if (i == first)
        inner.push_back(fmt::format("({} + {})", last, std::max<int64_t>(-offset, 0)));
      else if (i == second)
        inner.push_back(fmt::format("({} + {})", last, std::max<int64_t>(offset, 0)));
      else
        inner.push_back(outer.at(next++));
    }
    return writer.read(base, inner);
  }
  if (op == "unfold") {
    const size_t dim = place_of(node, integer_at(node, 1, "dimension", 0), from.shape.size());
    const int64_t step = integer_at(node, 3, "step", 1);
    naive_index inner(index.begin(), index.end() - 1);
    inner.at(dim) = fmt::format("({} * int64_t({}) + {})", inner.at(dim), step, index.back());
    return writer.read(base, inner);
  }
  if (from.source != graph_source::input)
    call.refuse("of anything but an input has no naive kernel");
  // as_strided: strides are numbers of the trace, so they hold where they follow no axis.
  if (result.shape_again != result.shape)
    call.refuse("has strides that only the trace tells");
  const auto strides = call.integers(2, "stride");
  if (strides.size() != index.size())
    call.refuse("has another number of strides than of dimensions");
  std::string number = fmt::format("int64_t({})", integer_at(node, 3, "storage_offset", 0));
  for (size_t i = 0; i < index.size(); ++i)
    number += fmt::format(" + {} * int64_t({})", index[i], strides[i]);
  return writer.read_linear(base, writer.let("int64_t", number));
}

} // namespace gristmill
