#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

/// An index from a tensor, counted from the end where it is negative.
std::string wrapped(const naive_call& call, const std::string& text, const std::string& size) {
  const std::string at = call.w.let("int64_t", text);
  return call.w.let("int64_t", fmt::format("{0} < 0 ? {0} + {1} : {0}", at, size));
}

std::string cat(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const auto parts = call.tensors(0);
  const size_t dim = call.dimension(call.integer(1, "dim", 0), index.size());
  const std::string out = call.w.variable(type, naive_literal(0, type));
  const std::string at = call.w.variable("int64_t", index.at(dim));
  size_t open = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    // An old habit of torch: an empty vector may stand among tensors of any shape.
    if (call.rank(parts[i]) != index.size())
      continue;
    const std::string size = call.w.size(parts[i], dim);
    call.w.open(fmt::format("if ({} < {})", at, size));
    call.w.line(fmt::format("{} = {};", out, call.read(parts[i], replaced(index, dim, at), type)));
    call.w.close();
    if (i + 1 < parts.size()) {
      call.w.open("else");
      call.w.line(fmt::format("{} -= {};", at, size));
      ++open;
    }
  }
  while (open-- > 0)
    call.w.close();
  return out;
}

std::string stack(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const auto parts = call.tensors(0);
  const size_t dim = call.dimension(call.integer(1, "dim", 0), index.size());
  const std::string out = call.w.variable(type, naive_literal(0, type));
  for (size_t i = 0; i < parts.size(); ++i) {
    call.w.open(fmt::format("if ({} == {})", index.at(dim), i));
    call.w.line(fmt::format("{} = {};", out, call.read(parts[i], without(index, dim), type)));
    call.w.close();
  }
  return out;
}

/// Where padding on both sides of the last dimensions puts an element of the result.
naive_index unpadded(const naive_call& call, const naive_index& index) {
  const auto pad = call.integers(1, "pad");
  if (pad.size() % 2 != 0 || pad.size() / 2 > index.size())
    call.refuse("has padding for more dimensions than there are");
  naive_index inner = index;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t dim = index.size() - 1 - i;
    if (pad[2 * i] != 0)
      inner[dim] =
        call.w.let("int64_t", fmt::format("{} - int64_t({})", index.at(dim), pad[2 * i]));
  }
  return inner;
}

std::string constant_pad(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t from = call.tensor(0);
  const naive_index inner = unpadded(call, index);
  std::string inside;
  for (size_t i = 0; i < inner.size(); ++i) {
    inside += fmt::format(
      "{0}{1} >= 0 && {1} < {2}", inside.empty() ? "" : " && ", inner[i], call.w.size(from, i));
  }
  const std::string out = call.w.variable(type, call.number(2, "value", type, 0));
  call.w.open(fmt::format("if ({})", inside.empty() ? "true" : inside));
  call.w.line(fmt::format("{} = {};", out, call.read(from, inner, type)));
  call.w.close();
  return out;
}

std::string edge_pad(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  naive_index inner = unpadded(call, index);
  const bool mirrors = call.op().starts_with("reflection");
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == index[i] && call.integers(1, "pad").size() / 2 <= index.size() - 1 - i)
      continue;
    const std::string last = call.w.let("int64_t", fmt::format("{} - 1", call.w.size(from, i)));
    inner[i] = call.w.let("int64_t",
      mirrors ? fmt::format("{0} < 0 ? -{0} : {0} > {1} ? 2 * {1} - {0} : {0}", inner[i], last)
              : fmt::format("{0} < 0 ? int64_t(0) : {0} > {1} ? {1} : {0}", inner[i], last));
  }
  return call.read(from, inner, call.type());
}

std::string flip(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  naive_index inner = index;
  for (size_t dim : call.dimensions(call.integers(1, "dims"), index.size()))
    inner.at(dim) = fmt::format("({} - 1 - {})", call.w.size(from, dim), index.at(dim));
  return call.read(from, inner, call.type());
}

std::string roll(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const auto shifts = call.integers(1, "shifts");
  const auto dims = call.integers(2, "dims");
  const auto shifted = [&](const std::string& at, const std::string& size, int64_t by) {
    const std::string back =
      call.w.let("int64_t", fmt::format("({0} - int64_t({1})) % {2}", at, by, size));
    return call.w.let("int64_t", fmt::format("{0} < 0 ? {0} + {1} : {0}", back, size));
  };
  if (dims.empty()) {
    const auto shape = call.w.shape(from);
    const std::string count = fmt::format("({})", [&] {
      std::string product = "int64_t(1)";
      for (const std::string& size : shape)
        product += " * " + size;
      return product;
    }());
    return naive_converted(
      call.w.read_linear(from, shifted(call.w.linear(shape, index), count, shifts.at(0))),
      call.w.type_of(from), call.type());
  }
  naive_index inner = index;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t dim = call.dimension(dims[i], index.size());
    inner.at(dim) = shifted(inner.at(dim), call.w.size(from, dim), shifts.at(i));
  }
  return call.read(from, inner, call.type());
}

std::string repeat(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const size_t rank = call.rank(from);
  if (rank > index.size())
    call.refuse("has fewer counts than dimensions");
  naive_index inner;
  for (size_t i = 0; i < rank; ++i)
    inner.push_back(call.w.let(
      "int64_t", fmt::format("{} % {}", index[index.size() - rank + i], call.w.size(from, i))));
  return call.read(from, inner, call.type());
}

std::string index_select(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const size_t dim = call.dimension(call.integer(1, "dim", 0), index.size());
  const int64_t list = call.tensor(2, "index");
  const naive_index place = call.rank(list) == 0 ? naive_index{} : naive_index{index.at(dim)};
  if (call.rank(from) == 0)
    return call.read(from, {}, call.type());
  const std::string at = wrapped(call, call.read(list, place, "int64_t"), call.w.size(from, dim));
  return call.read(from, replaced(index, dim, at), call.type());
}

std::string gather(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const size_t dim = call.dimension(call.integer(1, "dim", 0), index.size());
  const std::string at = call.read(call.tensor(2, "index"), index, "int64_t");
  if (index.empty())
    return call.read(from, {}, call.type());
  return call.read(
    from, replaced(index, dim, wrapped(call, at, call.w.size(from, dim))), call.type());
}

std::string embedding(const naive_call& call, const naive_index& index) {
  const int64_t weight = call.tensor(0);
  if (index.empty())
    call.refuse("has a result without dimensions");
  const naive_index place(index.begin(), index.end() - 1);
  const std::string at = call.w.let("int64_t", call.read(call.tensor(1), place, "int64_t"));
  return call.read(weight, {at, index.back()}, call.type());
}

/// The element of the flattened tensor.
std::string take(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  std::string count = "int64_t(1)";
  for (const std::string& size : call.w.shape(from))
    count += " * " + size;
  const std::string at = wrapped(call, call.read(call.tensor(1), index, "int64_t"), count);
  return naive_converted(call.w.read_linear(from, at), call.w.type_of(from), call.type());
}

/// Integer tensors for neighbouring dimensions, broadcast against each other; the dimensions before
/// the first of them stay where they are.
std::string advanced_index(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const auto lists = call.tensors(1);
  const auto first = static_cast<size_t>(call.integer(call.node.inputs.size(), "first_dim", 0));
  size_t rank = 0;
  for (int64_t list : lists) {
    if (call.value(list).dtype == "bool" || call.value(list).dtype == "uint8")
      call.refuse("by a mask has a result whose shape depends on the data");
    rank = std::max(rank, call.rank(list));
  }
  if (first + lists.size() > call.rank(from)
    || rank + call.rank(from) - lists.size() != index.size())
    call.refuse("has more indices than dimensions");
  const auto begin = index.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(rank);
  const naive_index place(begin, end);
  const auto& shape = call.result().shape;
  const auto shape_begin = shape.begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<int64_t> place_shape(
    shape_begin, shape_begin + static_cast<std::ptrdiff_t>(rank));
  naive_index inner(index.begin(), begin);
  for (size_t i = 0; i < lists.size(); ++i) {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = lists[i];
    inner.push_back(wrapped(
      call, call.aligned(operand, place_shape, place, "int64_t"), call.w.size(from, first + i)));
  }
  inner.insert(inner.end(), end, index.end());
  return call.read(from, inner, call.type());
}

/// The place in a list of counts to which the element's number belongs.
std::string repeat_interleave(const naive_call& call, const naive_index& index) {
  const int64_t counts = call.tensor(0);
  if (call.rank(counts) != 1 || call.is_tensor(1))
    call.refuse("of anything but a list of counts has no naive kernel");
  const std::string place = call.w.variable("int64_t", "int64_t(0)");
  const std::string end = call.w.variable("int64_t", "int64_t(0)");
  const std::string k = call.w.loop(call.w.size(counts, 0));
  call.w.line(fmt::format("{} += {};", end, call.read(counts, {k}, "int64_t")));
  call.w.line(fmt::format("{} += {} >= {} ? 1 : 0;", place, index.at(0), end));
  call.w.close();
  return naive_converted(place, "int64_t", call.type());
}

/// Half of a dimension times the sigmoid of the other half.
std::string glu(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t from = call.tensor(0);
  const size_t dim = call.dimension(call.integer(1, "dim", -1), index.size());
  const std::string half = call.w.size(call.node.outputs[0], dim);
  const std::string a = call.w.let(type, call.read(from, index, type));
  const std::string b = call.w.let(type,
    call.read(from, replaced(index, dim, fmt::format("({} + {})", index.at(dim), half)), type));
  return fmt::format("{0} / ({2}(1) + exp(-{1}))", a, b, type);
}

std::string pixel_shuffle(const naive_call& call, const naive_index& index) {
  const int64_t from = call.tensor(0);
  const int64_t factor = call.integer(1, "factor", 1);
  if (index.size() < 3 || factor < 1)
    call.refuse("needs three dimensions and a factor of at least 1");
  const size_t c = index.size() - 3;
  naive_index inner = index;
  if (call.op() == "pixel_shuffle") {
    inner[c] = fmt::format(
      "(({0} * {3} + {1} % {3}) * {3} + {2} % {3})", index[c], index[c + 1], index[c + 2], factor);
    inner[c + 1] = fmt::format("({} / {})", index[c + 1], factor);
    inner[c + 2] = fmt::format("({} / {})", index[c + 2], factor);
  } else {
    inner[c] = fmt::format("({} / {})", index[c], factor * factor);
    inner[c + 1] = fmt::format("({0} * {2} + {1} / {2} % {2})", index[c + 1], index[c], factor);
    inner[c + 2] = fmt::format("({0} * {2} + {1} % {2})", index[c + 2], index[c], factor);
  }
  return call.read(from, inner, call.type());
}

/// A tensor with a part of one dimension replaced by another tensor.
std::string slice_scatter(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t src = call.tensor(1);
  const bool is_select = call.op() == "select_scatter";
  const size_t dim = call.dimension(call.integer(2, "dim", 0), index.size());
  const naive_size whole = call.w.sizes().shape(call.tensor(0)).at(dim);
  naive_size start = call.amount(3, is_select ? "index" : "start", 0);
  if (start.traced < 0)
    start = whole + start;
  const int64_t step = is_select ? 1 : call.integer(5, "step", 1);
  const std::string past =
    call.w.let("int64_t", fmt::format("{} - {}", index.at(dim), call.w.amount(start)));
  const std::string out = call.w.variable(type, call.argument(0, "self", index, type));
  const std::string count = is_select ? "int64_t(1)" : call.w.size(src, dim);
  call.w.open(fmt::format("if ({0} >= 0 && {0} % {1} == 0 && {0} / {1} < {2})", past, step, count));
  const std::string at = fmt::format("({} / {})", past, step);
  call.w.line(fmt::format("{} = {};", out,
    call.read(src, is_select ? without(index, dim) : replaced(index, dim, at), type)));
  call.w.close();
  return out;
}

/// Zeros, with the gradient where the view had taken its elements from.
std::string view_backward(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t grad = call.tensor(0);
  const bool is_select = call.op() == "select_backward";
  const size_t dim = call.dimension(call.integer(2, "dim", 0), index.size());
  const naive_size whole = call.w.sizes().shape(call.node.outputs[0]).at(dim);
  naive_size start = call.amount(3, is_select ? "index" : "start", 0);
  if (start.traced < 0)
    start = whole + start;
  const int64_t step = is_select ? 1 : call.integer(5, "step", 1);
  const std::string past =
    call.w.let("int64_t", fmt::format("{} - {}", index.at(dim), call.w.amount(start)));
  const std::string out = call.w.variable(type, naive_literal(0, type));
  const std::string count = is_select ? "int64_t(1)" : call.w.size(grad, dim);
  call.w.open(fmt::format("if ({0} >= 0 && {0} % {1} == 0 && {0} / {1} < {2})", past, step, count));
  const std::string at = fmt::format("({} / {})", past, step);
  call.w.line(fmt::format("{} = {};", out,
    call.read(grad, is_select ? without(index, dim) : replaced(index, dim, at), type)));
  call.w.close();
  return out;
}

std::string diag_embed(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t offset = call.integer(1, "offset", 0);
  const size_t first = call.dimension(call.integer(2, "dim1", -2), index.size());
  const size_t second = call.dimension(call.integer(3, "dim2", -1), index.size());
  naive_index inner;
  for (size_t i = 0; i < index.size(); ++i) {
    if (i != first && i != second)
      inner.push_back(index[i]);
  }
  inner.push_back(
    fmt::format("({} - int64_t({}))", index.at(first), std::max<int64_t>(-offset, 0)));
  const std::string out = call.w.variable(type, naive_literal(0, type));
  call.w.open(fmt::format("if ({} - {} == int64_t({}))", index.at(second), index[first], offset));
  call.w.line(fmt::format("{} = {};", out, call.read(call.tensor(0), inner, type)));
  call.w.close();
  return out;
}

} // namespace

void add_naive_movement(naive_operator_table& table) {
  table["cat"] = {cat};
  table["stack"] = {stack};
  table["constant_pad_nd"] = {constant_pad};
  for (const char* op : {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
         "replication_pad1d", "replication_pad2d", "replication_pad3d"})
    table[op] = {edge_pad};
  table["flip"] = {flip};
  table["roll"] = {roll};
  table["repeat"] = {repeat};
  table["repeat_interleave"] = {repeat_interleave};
  table["index_select"] = {index_select};
  table["gather"] = {gather};
  table["embedding"] = {embedding};
  table["take"] = {take};
  table["index"] = {advanced_index};
  table["glu"] = {glu};
  for (const char* op : {"pixel_shuffle", "pixel_unshuffle"})
    table[op] = {pixel_shuffle};
  for (const char* op : {"slice_scatter", "select_scatter"})
    table[op] = {slice_scatter};
  for (const char* op : {"slice_backward", "select_backward"})
    table[op] = {view_backward};
  table["diag_embed"] = {diag_embed};
}

} // namespace gristmill
