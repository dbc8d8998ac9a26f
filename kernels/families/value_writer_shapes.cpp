#include "kernels/families/value_writer.hpp"

#include "kernels/expression_writer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

// What `value_writer` writes for operators that move elements or make them of nothing.
namespace gristmill {

namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

} // namespace

index_id value_writer::slice_start(const graph_node& node, const graph_value& base,
  const graph_value& what, size_t dim, size_t position) {
  const size_pair full = shape_of(base)[dim];
  const graph_operand* given = argument_of(node, position, "start");
  if (given == nullptr)
    return pool_.constant(0);
  if (given->kind != operand_kind::integer)
    refuse_node(node, "has a start that is no integer");
  const int64_t start = given->integer;
  if (given->varies) {
    // A slice up to the end tells its start in both traces.
    const size_pair rest = full - shape_of(what)[dim];
    if (rest.first == (start < 0 ? start + full.first : start))
      return pool_.size(rest);
    const auto formula = start < 0 ? sizes_.axis_of(start + full.first) : formula_of(*given);
    if (!formula)
      refuse_node(node,
        fmt::format("has an argument {} that follows the shape in a way not understood", start));
    return pool_.variable(parameters_.size(*formula));
  }
  if (start < 0)
    return start + full.first <= 0 ? pool_.constant(0)
                                   : pool_.size(full - size_pair{-start, -start});
  if (start > full.first)
    refuse_node(node, "has a start outside of its tensor");
  return pool_.constant(start);
}

std::optional<written_value> value_writer::read_moved(
  const graph_node& node, size_t output, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  if (is_one_of(
        op, {"view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze"})) {
    const graph_value& base = tensor(node, 0);
    return read(base.id, through_view(pool_, shape_of(base), shape_of(what), index));
  }
  if (op == "expand") {
    graph_operand operand;
    operand.kind = operand_kind::value;
    operand.value = tensor(node, 0).id;
    return read_operand(operand, what, index);
  }
  if (!is_one_of(op,
        {"permute", "transpose", "t", "select", "unbind", "slice", "narrow", "split",
          "split_with_sizes", "chunk", "flip", "roll", "repeat", "unfold"}))
    return std::nullopt;
  const graph_value& base = tensor(node, 0);
  const size_t dimensions = base.shape.size();
  if (op == "permute") {
    if (node.inputs.size() < 2 || node.inputs[1].list.size() != dimensions)
      refuse_node(node, "has no list of all dimensions");
    index_list inner(dimensions);
    for (size_t i = 0; i < dimensions; ++i)
      inner[front_dimension(node, node.inputs[1].list[i], dimensions)] = index[i];
    return read(base.id, inner);
  }
  if (op == "transpose" || op == "t") {
    index_list inner = index;
    if (dimensions >= 2) {
      const bool is_t = op == "t";
      const int64_t a = is_t ? 0 : integer_argument(node, 1, "dim0", 0);
      const int64_t b = is_t ? 1 : integer_argument(node, 2, "dim1", 1);
      std::swap(
        inner[front_dimension(node, a, dimensions)], inner[front_dimension(node, b, dimensions)]);
    }
    return read(base.id, inner);
  }
  if (op == "select" || op == "unbind") {
    const size_t dim = front_dimension(node, integer_argument(node, 1, "dim", 0), dimensions);
    index_list inner = index;
    index_id at = pool_.constant(static_cast<int64_t>(output));
    if (op == "select") {
      const graph_operand* given = argument_of(node, 2, "index");
      if (given == nullptr || given->kind != operand_kind::integer)
        refuse_node(node, "has no index");
      const int64_t number = given->integer;
      if (given->varies) {
        const auto formula = formula_of(*given);
        if (number < 0 || !formula)
          refuse_node(node, "has an index that follows the shape in a way not understood");
        at = pool_.variable(parameters_.size(*formula));
      } else {
        at = number >= 0 ? pool_.constant(number)
                         : pool_.size(shape_of(base)[dim] - size_pair{-number, -number});
      }
    }
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(dim), at);
    return read(base.id, inner);
  }
  if (op == "slice" || op == "narrow") {
    const size_t dim = front_dimension(node, integer_argument(node, 1, "dim", 0), dimensions);
    const int64_t step = op == "slice" ? integer_argument(node, 4, "step", 1) : 1;
    index_list inner = index;
    const index_id start = slice_start(node, base, what, dim, 2);
    inner[dim] = pool_.add(pool_.times(inner[dim], pool_.constant(step)), start);
    return read(base.id, inner);
  }
  if (is_one_of(op, {"split", "split_with_sizes", "chunk"})) {
    const size_t dim = front_dimension(node, integer_argument(node, 2, "dim", 0), dimensions);
    size_pair start{0, 0};
    for (size_t i = 0; i < output; ++i)
      start = start + shape_of(value(node.outputs[i]))[dim];
    index_list inner = index;
    inner[dim] = pool_.add(inner[dim], pool_.size(start));
    return read(base.id, inner);
  }
  if (op == "flip") {
    index_list inner = index;
    for (int64_t given : node.inputs.at(1).list) {
      const size_t dim = front_dimension(node, given, dimensions);
      const index_id size = pool_.size(shape_of(base)[dim]);
      inner[dim] = pool_.minus(pool_.minus(size, pool_.constant(1)), index[dim], size);
    }
    return read(base.id, inner);
  }
  if (op == "roll") {
    const graph_operand* shifts = argument_of(node, 1, "shifts");
    const graph_operand* dims = argument_of(node, 2, "dims");
    if (shifts == nullptr || dims == nullptr || shifts->list.size() != dims->list.size()
      || dims->list.empty())
      refuse_node(node, "of the flattened tensor belongs to no template family yet");
    index_list inner = index;
    for (size_t i = 0; i < dims->list.size(); ++i) {
      const size_t dim = front_dimension(node, dims->list[i], dimensions);
      const index_id size = pool_.size(shape_of(base)[dim]);
      const int64_t shift = shifts->list[i];
      const index_id steps = pool_.constant(shift < 0 ? -shift : shift);
      const index_id back = shift < 0 ? steps : pool_.minus(size, pool_.rest(steps, size), -1);
      inner[dim] = pool_.rest(pool_.add(inner[dim], back), size);
    }
    return read(base.id, inner);
  }
  if (op == "repeat") {
    const size_t skipped = index.size() - dimensions;
    index_list inner(index.begin() + static_cast<std::ptrdiff_t>(skipped), index.end());
    for (size_t i = 0; i < dimensions; ++i)
      inner[i] = base.shape[i] == 1 ? pool_.constant(0)
                                    : pool_.rest(inner[i], pool_.size(shape_of(base)[i]));
    return read(base.id, inner);
  }
  // unfold(dim, size, step): the windows' places come last.
  const size_t dim = front_dimension(node, integer_argument(node, 1, "dimension", 0), dimensions);
  index_list inner(index.begin(), index.end() - 1);
  inner[dim] = pool_.add(
    pool_.times(inner[dim], pool_.constant(integer_argument(node, 3, "step", 1))), index.back());
  return read(base.id, inner);
}

std::optional<written_value> value_writer::read_joined(
  const graph_node& node, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  if (op == "constant_pad_nd")
    return read_pad(node, what, index);
  if (op == "slice_backward" || op == "select_backward") {
    const graph_value& grad = tensor(node, 0);
    const size_t dim =
      front_dimension(node, integer_argument(node, 2, "dim", 0), what.shape.size());
    const int64_t start = integer_argument(node, 3, "start", 0);
    if (start < 0 || node.inputs[3].varies
      || (op == "slice_backward" && integer_argument(node, 5, "step", 1) != 1))
      refuse_node(node, "of that form belongs to no template family yet");
    const written_value out = declared(what.dtype);
    index_list inner = index;
    const index_id first = pool_.constant(start);
    const bool is_slice = op == "slice_backward";
    const index_id count = is_slice ? pool_.size(shape_of(grad)[dim]) : pool_.constant(1);
    open(fmt::format(
      "if ({0} >= {1} && {0} < {1} + {2})", text(index[dim]), text(first), text(count)));
    if (is_slice)
      inner[dim] = pool_.minus(index[dim], first, count);
    else
      inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(dim));
    line(fmt::format("{} = {};", out.text, read_as(grad.id, inner, out.kind)));
    close();
    return out;
  }
  if (op != "cat" && op != "stack")
    return std::nullopt;
  if (node.inputs.empty() || node.inputs[0].kind != operand_kind::values)
    refuse_node(node, "has no list of tensors");
  const auto& parts = node.inputs[0].list;
  const size_t dim = front_dimension(node, integer_argument(node, 1, "dim", 0), what.shape.size());
  const written_value out = declared(what.dtype);
  index_id start = pool_.constant(0);
  std::vector<int64_t> live;
  for (int64_t part : parts) {
    // An empty tensor of one dimension may stand among the others.
    if (op == "stack" || value(part).shape.size() == what.shape.size())
      live.push_back(part);
  }
  for (size_t i = 0; i < live.size(); ++i) {
    const graph_value& part = value(live[i]);
    const index_id size = op == "stack" ? pool_.constant(1) : pool_.size(shape_of(part)[dim]);
    const index_id end = pool_.add(start, size);
    if (i + 1 < live.size())
      open(fmt::format("{}if ({} < {})", i == 0 ? "" : "else ", text(index[dim]), text(end)));
    else
      open(i == 0 ? "" : "else");
    index_list inner = index;
    if (op == "stack")
      inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(dim));
    else
      inner[dim] = pool_.minus(index[dim], start, size);
    line(fmt::format("{} = {};", out.text, read_as(part.id, inner, out.kind)));
    close();
    start = end;
  }
  return out;
}

written_value value_writer::read_pad(
  const graph_node& node, const graph_value& what, const index_list& index) {
  const graph_value& base = tensor(node, 0);
  if (node.inputs.size() < 2)
    refuse_node(node, "has no widths");
  const auto& widths = node.inputs[1].list;
  const written_value out = declared(what.dtype);
  if (const graph_operand* fill = argument_of(node, 2, "value"))
    line(fmt::format("{} = {};", out.text, converted(read_operand(*fill, what, index), out.kind)));
  std::string condition;
  index_list inner = index;
  for (size_t i = 0; 2 * i + 1 < widths.size(); ++i) {
    const size_t dim = index.size() - 1 - i;
    const int64_t before = widths[2 * i];
    const index_id size = pool_.size(shape_of(base)[dim]);
    const size_pair more = shape_of(what)[dim] - shape_of(base)[dim];
    const bool is_known = more == size_pair{before + widths[2 * i + 1], before + widths[2 * i + 1]}
      || (before == 0 && more.first == widths[2 * i + 1])
      || (widths[2 * i + 1] == 0 && more.first == before);
    if (!is_known)
      refuse_node(node, "has widths that follow the shape in a way not understood");
    if (before == 0 && widths[2 * i + 1] == 0)
      continue;
    const index_id width = before == 0       ? pool_.constant(0)
      : widths[2 * i + 1] == 0 && before > 0 ? pool_.size(more)
      : before > 0                           ? pool_.constant(before)
                                             : -1;
    const index_id at = width >= 0 ? pool_.minus(index[dim], width, size)
                                   : pool_.add(index[dim], pool_.constant(-before));
    condition += fmt::format("{}{} >= 0 && {} < {}", condition.empty() ? "" : " && ",
      before > 0 ? text(at) : "0", text(at), text(size));
    inner[dim] = at;
  }
  open(condition.empty() ? "" : fmt::format("if ({})", condition));
  line(fmt::format("{} = {};", out.text, read_as(base.id, inner, out.kind)));
  close();
  return out;
}

std::optional<written_value> value_writer::read_gathered(
  const graph_node& node, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  // An index that data give: a name, counted from the end where it is negative.
  const auto index_of = [&](const written_value& at, index_id size, bool may_be_negative) {
    if (at.kind != number_kind::integer)
      refuse_node(node, "has an index that is no integer");
    const std::string name = fresh("at");
    line(may_be_negative ? fmt::format(
           "const index_t {0} = index_t({1} < 0 ? {1} + {2} : {1});", name, at.text, text(size))
                         : fmt::format("const index_t {} = index_t({});", name, at.text));
    return pool_.variable(name, size);
  };
  if (op == "embedding") {
    const graph_value& table = tensor(node, 0);
    const graph_value& ids = tensor(node, 1);
    const index_list at(index.begin(), index.end() - 1);
    const index_id row = index_of(read(ids.id, at), pool_.size(shape_of(table)[0]), false);
    return read(table.id, {row, index.back()});
  }
  if (op == "index_select") {
    const graph_value& base = tensor(node, 0);
    const size_t dim =
      front_dimension(node, integer_argument(node, 1, "dim", 0), base.shape.size());
    const graph_value& ids = tensor(node, 2);
    index_list inner = index;
    inner[dim] = index_of(read(ids.id, index_list(ids.shape.size(), index[dim])),
      pool_.size(shape_of(base)[dim]), false);
    return read(base.id, inner);
  }
  if (op == "gather") {
    const graph_value& base = tensor(node, 0);
    const size_t dim =
      front_dimension(node, integer_argument(node, 1, "dim", 0), base.shape.size());
    index_list inner = index;
    inner[dim] = index_of(read(tensor(node, 2).id, index), pool_.size(shape_of(base)[dim]), false);
    return read(base.id, inner);
  }
  if (op == "index") {
    const graph_value& base = tensor(node, 0);
    if (node.inputs.size() < 2 || node.inputs[1].kind != operand_kind::values)
      refuse_node(node, "has no list of tensors");
    const auto& lists = node.inputs[1].list;
    size_t dimensions = 0;
    for (int64_t id : lists) {
      if (value(id).dtype == "bool")
        refuse_node(node, "with a mask belongs to no template family yet");
      dimensions = std::max(dimensions, value(id).shape.size());
    }
    if (dimensions + base.shape.size() - lists.size() != index.size())
      refuse_node(node, "gives a result of unexpected dimensions");
    // The indices' own dimensions come first, then what they leave of the tensor.
    graph_value head = what;
    head.shape.resize(dimensions);
    head.shape_again.resize(std::min(head.shape_again.size(), dimensions));
    const index_list front(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(dimensions));
    index_list inner;
    for (size_t i = 0; i < lists.size(); ++i) {
      graph_operand operand;
      operand.kind = operand_kind::value;
      operand.value = lists[i];
      inner.push_back(
        index_of(read_operand(operand, head, front), pool_.size(shape_of(base)[i]), true));
    }
    inner.insert(inner.end(), index.begin() + static_cast<std::ptrdiff_t>(dimensions), index.end());
    return read(base.id, inner);
  }
  if (op == "repeat_interleave") {
    // The form that counts: 0, 0, 1, 1, … from one number that is repeated.
    const graph_value* repeats = &tensor(node, 0);
    for (int steps = 0; steps < 8 && repeats->source == graph_source::computed; ++steps) {
      const auto [from, position] = origin(repeats->id);
      if (from == nullptr || plain_op(from->op) != "expand" || repeats->shape.size() != 1)
        break;
      repeats = &tensor(*from, 0);
    }
    if (repeats->shape != std::vector<int64_t>{1} && !repeats->shape.empty())
      refuse_node(node, "with counts that differ belongs to no template family yet");
    const index_list first(repeats->shape.size(), pool_.constant(0));
    return written_value{fmt::format("(int64_t({}) / {})", text(index[0]),
                           read_as(repeats->id, first, number_kind::integer)),
      number_kind::integer};
  }
  return std::nullopt;
}

std::optional<written_value> value_writer::read_made(
  const graph_node& node, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  const number_kind kind = kind_of(what.dtype);
  const auto literal = [&](double number) {
    return written_value{converted({float_literal(number), number_kind::number}, kind), kind};
  };
  const auto given = [&](size_t position, std::string_view keyword) {
    const graph_operand* found = argument_of(node, position, keyword);
    if (found == nullptr)
      refuse_node(node, fmt::format("lacks its argument {}", position));
    return rounded(what.dtype, read_operand(*found, what, index));
  };
  if (is_one_of(op, {"zeros", "new_zeros", "zeros_like", "zero", "empty"}))
    return literal(0);
  if (is_one_of(op, {"ones", "new_ones", "ones_like"}))
    return literal(1);
  if (op == "full" || op == "full_like" || op == "fill")
    return given(1, "fill_value");
  if (op == "new_full")
    return given(2, "fill_value");
  if (op == "scalar_tensor")
    return given(0, "s");
  if (op == "eye")
    return written_value{
      converted(
        {fmt::format("({} == {})", text(index[0]), text(index[1])), number_kind::truth}, kind),
      kind};
  if (op == "one_hot") {
    const index_list front(index.begin(), index.end() - 1);
    return written_value{
      fmt::format("int64_t({} == {})", read_as(tensor(node, 0).id, front, number_kind::integer),
        text(index.back())),
      number_kind::integer};
  }
  if (op == "arange") {
    // arange(end), arange(start, end) and arange(start, end, step).
    const size_t count = node.inputs.size();
    const std::string start =
      count > 1 ? converted(read_operand(node.inputs[0], what, index), kind) : "0";
    const std::string step =
      count > 2 ? converted(read_operand(node.inputs[2], what, index), kind) : "1";
    const char* type = kind == number_kind::number ? "float" : "int64_t";
    const std::string at = fmt::format("{}({})", type, text(index[0]));
    if (start == "0" && step == "1")
      return rounded(what.dtype, {at, kind});
    return rounded(what.dtype, {fmt::format("({} + {} * {})", start, at, step), kind});
  }
  if (op == "tril" || op == "triu") {
    const graph_value& base = tensor(node, 0);
    const graph_operand* diagonal = argument_of(node, 1, "diagonal");
    if (diagonal != nullptr && diagonal->varies)
      refuse_node(node, "has a diagonal that follows the shape");
    const int64_t by = diagonal == nullptr ? 0 : diagonal->integer;
    const std::string row = text(index[index.size() - 2]);
    const std::string column = text(index.back());
    const std::string keeps =
      fmt::format("{} - {} {} {}", column, row, op == "tril" ? "<=" : ">=", by);
    const std::string element = read_as(base.id, index, kind);
    const char* zero = kind == number_kind::number ? "0.0f"
      : kind == number_kind::integer               ? "int64_t(0)"
                                                   : "false";
    return written_value{fmt::format("{} ? {} : {}", keeps, element, zero), kind};
  }
  return std::nullopt;
}

std::optional<written_value> value_writer::read_window(
  const graph_node& node, size_t output, const graph_value& what, const index_list& index) {
  const std::string_view op = plain_op(node.op);
  if (is_one_of(op, {"upsample_nearest2d", "upsample_nearest1d"})) {
    const graph_value& base = tensor(node, 0);
    index_list inner = index;
    for (size_t i = 2; i < index.size(); ++i) {
      const size_pair from = shape_of(base)[i];
      const size_pair to = shape_of(what)[i];
      if (from.first == 0 || to.first % from.first != 0
        || to != from * size_pair{to.first / from.first, to.first / from.first})
        refuse_node(node, "by a factor that is no integer belongs to no template family yet");
      inner[i] = pool_.over(index[i], pool_.constant(to.first / from.first));
    }
    return read(base.id, inner);
  }
  const bool is_max = is_one_of(op, {"max_pool2d_with_indices", "max_pool1d"});
  if ((!is_max && !is_one_of(op, {"avg_pool2d", "avg_pool1d"})) || output != 0)
    return std::nullopt;
  const graph_value& base = tensor(node, 0);
  const size_t spatial = op.find("2d") != std::string_view::npos ? 2 : 1;
  const size_t first = index.size() - spatial;
  const auto list = [&](size_t position, std::string_view keyword, int64_t fallback,
                      const std::vector<int64_t>& other) {
    const graph_operand* found = argument_of(node, position, keyword);
    std::vector<int64_t> numbers = found == nullptr ? other
      : found->kind == operand_kind::integer        ? std::vector<int64_t>{found->integer}
                                                    : found->list;
    if (numbers.empty())
      numbers = other.empty() ? std::vector<int64_t>{fallback} : other;
    if (numbers.size() == 1)
      numbers.resize(spatial, numbers.front());
    return numbers;
  };
  const auto size = list(1, "kernel_size", 1, {});
  const auto stride = list(2, "stride", 1, size);
  const auto padding = list(3, "padding", 0, {});
  const auto dilation = is_max ? list(4, "dilation", 1, {}) : std::vector<int64_t>(spatial, 1);
  const graph_operand* up = argument_of(node, is_max ? 5 : 4, "ceil_mode");
  const graph_operand* with_pad = is_max ? nullptr : argument_of(node, 5, "count_include_pad");
  const bool counts_pad = with_pad == nullptr || with_pad->integer != 0;
  if (up != nullptr && up->integer != 0)
    refuse_node(node, "that rounds its size up belongs to no template family yet");
  if (!is_max && argument_of(node, 6, "divisor_override") != nullptr)
    refuse_node(node, "with another divisor belongs to no template family yet");
  const std::string total = fresh("v");
  const std::string count = fresh("count");
  line(fmt::format("float {} = {};", total, is_max ? "-INFINITY" : "0.0f"));
  line(fmt::format("int {} = 0;", count));
  index_list inner = index;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string k = fresh("k");
    const std::string at = fresh("at");
    const index_id limit = pool_.size(shape_of(base)[first + i]);
    open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, size[i]));
    line(fmt::format("const index_t {} = {} * {} + {} * {} - {};", at, text(index[first + i]),
      stride[i], k, dilation[i], padding[i]));
    line(fmt::format("if ({0} < 0 || {0} >= {1})\n{2}  continue;", at, text(limit),
      std::string(2 * scopes_.size(), ' ')));
    inner[first + i] = pool_.variable(at, limit);
  }
  const std::string element = read_as(base.id, inner, number_kind::number);
  line(is_max ? fmt::format("{0} = fmaxf({0}, {1});", total, element)
              : fmt::format("{} += {};", total, element));
  line(fmt::format("++{};", count));
  for (size_t i = 0; i < spatial; ++i)
    close();
  if (is_max)
    return rounded(what.dtype, {total, number_kind::number});
  int64_t area = 1;
  for (int64_t one : size)
    area *= one;
  const bool has_padding =
    std::any_of(padding.begin(), padding.end(), [](int64_t one) { return one != 0; });
  return rounded(what.dtype,
    {has_padding && !counts_pad ? fmt::format("{} / float({})", total, count)
                                : fmt::format("{} / {}.0f", total, area),
      number_kind::number});
}

} // namespace gristmill
