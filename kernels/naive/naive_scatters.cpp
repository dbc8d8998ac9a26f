#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

// Every element of the result looks for the elements that are scattered to it, in their order:
// slow, free of atomics, and the same each time.

/// The type in which scattered elements are summed.
std::string sum_type(const std::string& type) {
  return type == "float" ? "double" : type;
}

std::string wrapped(const naive_call& call, const std::string& text, const std::string& size) {
  const std::string at = call.w.let("int64_t", text);
  return call.w.let("int64_t", fmt::format("{0} < 0 ? {0} + {1} : {0}", at, size));
}

/// How a scattered element joins what is there.
std::string joined(const naive_call& call, const std::string& how, const std::string& out,
  const std::string& element) {
  if (how == "set")
    return fmt::format("{} = {};", out, element);
  if (how == "sum" || how == "add")
    return fmt::format("{} += {};", out, element);
  if (how == "prod" || how == "multiply")
    return fmt::format("{} *= {};", out, element);
  if (how == "amax")
    return fmt::format("{0} = {1} > {0} || {1} != {1} ? {1} : {0};", out, element);
  if (how == "amin")
    return fmt::format("{0} = {1} < {0} || {1} != {1} ? {1} : {0};", out, element);
  call.refuse(fmt::format("reduces by '{}', which has no naive kernel", how));
}

/// scatter, scatter_add, scatter_reduce: index has the shape of the scattered elements and says
/// where along one dimension each goes.
std::string scatter(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string op = call.op();
  std::string how = "set";
  bool takes_self = true;
  if (op == "scatter_add") {
    how = "add";
  } else if (op == "scatter_reduce") {
    how = call.text(4, "reduce");
    takes_self = call.flag(5, "include_self", true);
  } else if (call.has(4, "reduce")) {
    how = call.text(4, "reduce");
  }
  const std::string inner = how == "set" ? type : sum_type(type);
  const size_t rank = index.size();
  const size_t dim = call.dimension(call.integer(1, "dim", 0), rank);
  const int64_t list = call.tensor(2, "index");
  const std::string out = call.w.variable(inner, call.argument(0, "self", index, inner));
  const std::string count = takes_self ? "" : call.w.variable("bool", "false");
  if (rank == 0)
    call.refuse("of a tensor without dimensions has no naive kernel");
  std::string inside;
  for (size_t i = 0; i < rank; ++i) {
    if (i != dim)
      inside +=
        fmt::format("{}{} < {}", inside.empty() ? "" : " && ", index[i], call.w.size(list, i));
  }
  call.w.open(fmt::format("if ({})", inside.empty() ? "true" : inside));
  const std::string k = call.w.loop(call.w.size(list, dim));
  const naive_index at = replaced(index, dim, k);
  const std::string to =
    wrapped(call, call.read(list, at, "int64_t"), call.w.size(call.node.outputs[0], dim));
  call.w.open(fmt::format("if ({} == {})", to, index.at(dim)));
  const graph_operand* src = call.find(3, op == "scatter" && !call.is_tensor(3) ? "value" : "src");
  if (src == nullptr)
    call.refuse("has nothing to scatter");
  const std::string element = call.w.let(inner,
    src->kind == operand_kind::value ? call.read(src->value, at, inner)
                                     : call.w.number(call.node, *src, inner));
  if (!takes_self) {
    call.w.line(fmt::format("if (!{})", count));
    call.w.line(fmt::format("  {} = {};", out, element));
    call.w.open("else");
    call.w.line(joined(call, how, out, element));
    call.w.close();
    call.w.line(fmt::format("{} = true;", count));
  } else {
    call.w.line(joined(call, how, out, element));
  }
  call.w.close();
  call.w.close();
  call.w.close();
  return naive_converted(out, inner, type);
}

/// index_add, index_copy, index_fill: one list for a whole dimension.
std::string index_along(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string op = call.op();
  const std::string inner = op == "index_add" ? sum_type(type) : type;
  if (index.empty())
    call.refuse("of a tensor without dimensions has no naive kernel");
  const size_t dim = call.dimension(call.integer(1, "dim", 0), index.size());
  const int64_t list = call.tensor(2, "index");
  if (call.rank(list) != 1)
    call.refuse("needs a list of one dimension");
  const std::string out = call.w.variable(inner, call.argument(0, "self", index, inner));
  const std::string k = call.w.loop(call.w.size(list, 0));
  const std::string to =
    wrapped(call, call.read(list, {k}, "int64_t"), call.w.size(call.node.outputs[0], dim));
  call.w.open(fmt::format("if ({} == {})", to, index.at(dim)));
  if (op == "index_fill")
    call.w.line(fmt::format("{} = {};", out, call.number(3, "value", inner, 0)));
  else if (op == "index_copy")
    call.w.line(fmt::format(
      "{} = {};", out, call.read(call.tensor(3, "source"), replaced(index, dim, k), inner)));
  else
    call.w.line(fmt::format("{} += {} * {};", out, call.number(4, "alpha", inner, 1),
      call.read(call.tensor(3, "source"), replaced(index, dim, k), inner)));
  call.w.close();
  call.w.close();
  return naive_converted(out, inner, type);
}

/// Integer tensors for neighbouring dimensions say where each element of `values` goes.
std::string index_put(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const auto lists = call.tensors(1);
  const bool adds = call.flag(3, "accumulate", false);
  const std::string inner = adds ? sum_type(type) : type;
  const auto first = static_cast<size_t>(call.integer(call.node.inputs.size(), "first_dim", 0));
  if (first + lists.size() > index.size())
    call.refuse("has more indices than dimensions");
  // The lists broadcast against each other; the longest dimension of each place decides.
  size_t rank = 0;
  for (int64_t list : lists) {
    if (call.value(list).dtype == "bool" || call.value(list).dtype == "uint8")
      call.refuse("by a mask has no naive kernel");
    rank = std::max(rank, call.rank(list));
  }
  std::vector<int64_t> place_shape(rank, 1);
  std::vector<std::string> place_sizes(rank, "int64_t(1)");
  for (int64_t list : lists) {
    const auto& shape = call.value(list).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t at = rank - shape.size() + i;
      if (shape[i] != 1) {
        place_shape[at] = shape[i];
        place_sizes[at] = call.w.size(list, i);
      }
    }
  }
  const std::string out = call.w.variable(inner, call.argument(0, "self", index, inner));
  std::string count = "int64_t(1)";
  for (const std::string& size : place_sizes)
    count += " * " + size;
  const std::string k = call.w.loop(count);
  const naive_index place = call.w.unravelled(place_sizes, k);
  std::string here = "true";
  for (size_t i = 0; i < lists.size(); ++i) {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = lists[i];
    const std::string to = wrapped(call, call.aligned(operand, place_shape, place, "int64_t"),
      call.w.size(call.node.outputs[0], first + i));
    here += fmt::format(" && {} == {}", to, index[first + i]);
  }
  call.w.open(fmt::format("if ({})", here));
  // The values have the shape of the result, with the places instead of the dimensions that the
  // lists speak of.
  naive_index at = place;
  std::vector<int64_t> values_shape = place_shape;
  for (size_t i = first + lists.size(); i < index.size(); ++i) {
    at.push_back(index[i]);
    values_shape.push_back(call.result().shape[i]);
  }
  for (size_t i = first; i-- > 0;) {
    at.insert(at.begin(), index[i]);
    values_shape.insert(values_shape.begin(), call.result().shape[i]);
  }
  graph_operand values;
  values.kind = operand_kind::value;
  values.value = call.tensor(2, "values");
  call.w.line(fmt::format(
    "{} {} {};", out, adds ? "+=" : "=", call.aligned(values, values_shape, at, inner)));
  call.w.close();
  call.w.close();
  return naive_converted(out, inner, type);
}

/// A row of the table gets the gradients of all places that read it.
std::string embedding_backward(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string inner = sum_type(type);
  const int64_t grad = call.tensor(0);
  const int64_t list = call.tensor(1);
  if (call.flag(4, "scale_grad_by_freq", false))
    call.refuse("scaled by frequency has no naive kernel");
  const std::string out = call.w.variable(inner, naive_literal(0, inner));
  call.w.open(
    fmt::format("if ({} != {})", index.at(0), call.w.amount(call.amount(3, "padding_idx", -1))));
  const auto shape = call.w.shape(list);
  std::string count = "int64_t(1)";
  for (const std::string& size : shape)
    count += " * " + size;
  const std::string k = call.w.loop(count);
  const naive_index place = call.w.unravelled(shape, k);
  call.w.open(fmt::format("if ({} == {})", call.read(list, place, "int64_t"), index[0]));
  naive_index at = place;
  at.push_back(index.at(1));
  call.w.line(fmt::format("{} += {};", out, call.read(grad, at, inner)));
  call.w.close();
  call.w.close();
  call.w.close();
  return naive_converted(out, inner, type);
}

/// How often each number occurs, or the sum of the weights that stand with it.
std::string bincount(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t from = call.tensor(0);
  const std::string out = call.w.variable(type, naive_literal(0, type));
  const std::string k = call.w.loop(call.w.size(from, 0));
  call.w.open(fmt::format("if ({} == {})", call.read(from, {k}, "int64_t"), index.at(0)));
  call.w.line(fmt::format("{} += {};", out,
    call.is_tensor(1, "weights") ? call.read(call.tensor(1, "weights"), {k}, type)
                                 : naive_literal(1, type)));
  call.w.close();
  call.w.close();
  return out;
}

} // namespace

void add_naive_scatters(naive_operator_table& table) {
  for (const char* op : {"scatter", "scatter_add", "scatter_reduce"})
    table[op] = {scatter};
  for (const char* op : {"index_add", "index_copy", "index_fill"})
    table[op] = {index_along};
  for (const char* op : {"index_put", "_index_put_impl", "_unsafe_index_put"})
    table[op] = {index_put};
  table["embedding_dense_backward"] = {embedding_backward};
  table["bincount"] = {bincount};
}

} // namespace gristmill
