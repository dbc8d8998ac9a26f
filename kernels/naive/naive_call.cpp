#include "kernels/naive/naive_call.hpp"

#include "kernels/naive/naive_types.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

naive_call::naive_call(naive_writer& writer, const graph_node& called, size_t which)
  : w(writer), node(called), output(which) {}

std::string naive_call::op() const {
  const bool is_in_place = node.op.ends_with('_') && !node.op.ends_with("__");
  return is_in_place ? node.op.substr(0, node.op.size() - 1) : node.op;
}

void naive_call::refuse(const std::string& why) const {
  throw no_template{fmt::format("operator '{}' {}", node.op, why)};
}

const graph_operand* naive_call::find(size_t place, std::string_view name) const {
  const graph_operand* found = nullptr;
  if (place < node.inputs.size())
    found = &node.inputs[place];
  else if (!name.empty())
    found = find_attr(node, name);
  return found == nullptr || found->kind == operand_kind::none ? nullptr : found;
}

int64_t naive_call::tensor(size_t place, std::string_view name) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr || operand->kind != operand_kind::value)
    refuse(fmt::format("has no tensor as its argument {}", place));
  return operand->value;
}

bool naive_call::is_tensor(size_t place, std::string_view name) const {
  const graph_operand* operand = find(place, name);
  return operand != nullptr && operand->kind == operand_kind::value;
}

std::vector<int64_t> naive_call::tensors(size_t place) const {
  const graph_operand* operand = find(place);
  if (operand != nullptr && operand->kind == operand_kind::value)
    return {operand->value};
  if (operand == nullptr || operand->kind != operand_kind::values || operand->list.empty())
    refuse(fmt::format("has no list of tensors as its argument {}", place));
  return operand->list;
}

int64_t naive_call::integer(size_t place, std::string_view name, int64_t fallback) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr)
    return fallback;
  if (operand->kind != operand_kind::integer && operand->kind != operand_kind::boolean)
    refuse(fmt::format("needs a plain integer as its argument {}", place));
  if (operand->varies)
    refuse(fmt::format(
      "has an argument {} that follows the shape, where only a constant is understood", place));
  return operand->integer;
}

bool naive_call::flag(size_t place, std::string_view name, bool fallback) const {
  return integer(place, name, fallback ? 1 : 0) != 0;
}

std::string naive_call::text(size_t place, std::string_view name) const {
  const graph_operand* operand = find(place, name);
  return operand != nullptr && operand->kind == operand_kind::text ? operand->text : "";
}

std::vector<int64_t> naive_call::integers(size_t place, std::string_view name) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr)
    return {};
  if (operand->kind == operand_kind::integer && !operand->varies)
    return {operand->integer};
  if (operand->kind != operand_kind::integers)
    refuse(fmt::format("needs a list of integers as its argument {}", place));
  return operand->list;
}

std::vector<int64_t> naive_call::integers_for(
  size_t place, std::string_view name, size_t count, int64_t fallback) const {
  std::vector<int64_t> list = integers(place, name);
  if (list.empty())
    list.assign(1, fallback);
  if (list.size() == 1)
    list.assign(count, list.front());
  if (list.size() != count)
    refuse(fmt::format("has {} numbers for {} dimensions", list.size(), count));
  return list;
}

naive_size naive_call::amount(size_t place, std::string_view name, int64_t fallback) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr)
    return naive_constant(fallback);
  if (operand->kind != operand_kind::integer)
    refuse(fmt::format("needs an integer as its argument {}", place));
  return w.sizes().integer(node.op, operand->integer, operand->varies);
}

size_t naive_call::dimension(int64_t dim, size_t dimensions) const {
  const auto count = static_cast<int64_t>(std::max<size_t>(dimensions, 1));
  const int64_t from_front = dim < 0 ? dim + count : dim;
  if (from_front < 0 || from_front >= count)
    refuse(fmt::format("names dimension {} of a tensor with {}", dim, dimensions));
  return static_cast<size_t>(from_front);
}

std::vector<size_t> naive_call::dimensions(
  const std::vector<int64_t>& dims, size_t dimensions) const {
  std::vector<size_t> list;
  for (int64_t dim : dims)
    list.push_back(dimension(dim, dimensions));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::string naive_call::read(int64_t id, const naive_index& index, std::string_view as_type) const {
  return naive_converted(w.read(id, index), w.type_of(id), as_type);
}

std::string naive_call::aligned(const graph_operand& operand,
  const std::vector<int64_t>& result_shape, const naive_index& index,
  std::string_view as_type) const {
  if (operand.kind != operand_kind::value)
    return w.number(node, operand, as_type);
  const auto& from = w.value(operand.value).shape;
  if (from.size() > index.size() || index.size() != result_shape.size())
    refuse("has an argument of more dimensions than its result");
  const size_t skipped = index.size() - from.size();
  naive_index inner(index.begin() + static_cast<std::ptrdiff_t>(skipped), index.end());
  for (size_t i = 0; i < inner.size(); ++i) {
    if (from[i] == 1 && result_shape[i + skipped] != 1)
      inner[i] = "int64_t(0)";
    else if (from[i] != result_shape[i + skipped])
      refuse("has an argument that does not broadcast to its result");
  }
  return read(operand.value, inner, as_type);
}

std::string naive_call::argument(size_t place, std::string_view name, const naive_index& index,
  std::string_view as_type, const std::string& fallback) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr) {
    if (fallback.empty())
      refuse(fmt::format("lacks its argument {}", place));
    return fallback;
  }
  return aligned(*operand, result().shape, index, as_type);
}

std::string naive_call::number(
  size_t place, std::string_view name, std::string_view as_type, double fallback) const {
  const graph_operand* operand = find(place, name);
  if (operand == nullptr)
    return naive_literal(fallback, as_type);
  if (operand->kind == operand_kind::value)
    return read(operand->value, naive_index(rank(operand->value), "int64_t(0)"), as_type);
  return w.number(node, *operand, as_type);
}

std::string naive_call::common_type(size_t first, size_t count) const {
  // Categories: bool, integer, float. Numbers count by category only.
  bool is_any_float = false;
  bool is_any_double = false;
  bool is_any_integer = false;
  for (size_t i = first; i < first + count; ++i) {
    const graph_operand* operand = find(i);
    if (operand == nullptr)
      continue;
    if (operand->kind == operand_kind::value) {
      const graph_value& what = w.value(operand->value);
      const bool is_floating = naive_is_float(what.dtype);
      is_any_float = is_any_float || is_floating;
      // A 0-d tensor promotes nothing of its own category.
      is_any_double = is_any_double || (what.dtype == "float64" && !what.shape.empty());
      is_any_integer = is_any_integer || what.dtype != "bool";
    } else {
      is_any_float = is_any_float || operand->kind == operand_kind::number;
      is_any_integer = true;
    }
  }
  return is_any_double ? "double" : is_any_float ? "float" : is_any_integer ? "int64_t" : "bool";
}

naive_index replaced(naive_index index, size_t dim, const std::string& by) {
  index.at(dim) = by;
  return index;
}

naive_index without(naive_index index, size_t dim) {
  if (dim >= index.size())
    throw no_template{"an index lacks the dimension that an operator takes away"};
  index.erase(index.begin() + static_cast<std::ptrdiff_t>(dim));
  return index;
}

naive_index inserted(naive_index index, size_t dim, const std::string& entry) {
  if (dim > index.size())
    throw no_template{"an index is too short for the dimension that an operator adds"};
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(dim), entry);
  return index;
}

} // namespace gristmill
