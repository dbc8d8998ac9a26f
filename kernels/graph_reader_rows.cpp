#include "kernels/graph_reader.hpp"

#include <algorithm>
#include <fmt/format.h>

// The reductions of `graph_reader`: what operators over a whole row are in terms of sums and
// extrema.
namespace gristmill {

namespace {

/// What a reduction is told about its dimensions.
struct row_arguments {
  std::vector<int64_t> dims;
  bool has_dims = false;
  bool keeps_dim = false;
};

const graph_operand* find_argument(
  const graph_node& node, size_t position, std::string_view keyword) {
  if (position < node.inputs.size() && node.inputs[position].kind != operand_kind::none)
    return &node.inputs[position];
  return find_attr(node, keyword);
}

bool is_true(const graph_operand* operand) {
  return operand != nullptr && operand->kind == operand_kind::boolean && operand->integer != 0;
}

row_arguments read_row_arguments(const graph_node& node) {
  row_arguments arguments;
  const std::string_view op = node.op;
  const bool has_order = op == "linalg_vector_norm" || op == "norm";
  const bool has_unbiased = op == "var" || op == "std" || op == "var_mean";
  const size_t at = has_order ? 2 : 1;
  if (const graph_operand* dims = find_argument(node, at, "dim"); dims != nullptr) {
    if (dims->kind == operand_kind::integers && !dims->list.empty()) {
      arguments.dims = dims->list;
      arguments.has_dims = true;
    } else if (dims->kind == operand_kind::integer) {
      arguments.dims = {dims->integer};
      arguments.has_dims = true;
    }
  }
  // var.dim has `unbiased` before `keepdim`; var.correction has keyword arguments only.
  arguments.keeps_dim = is_true(find_argument(node, has_unbiased ? 3 : at + 1, "keepdim"));
  return arguments;
}

} // namespace

int graph_reader::row_body(const graph_node& node, const graph_value& reduced, bool keeps_dim,
  const index_map& index, bool index_is_element) {
  const size_t dimensions = kernel_.space.size();
  bool is_ours = kernel_.family == template_family::row && reduced.shape.size() == dimensions;
  for (size_t i = 0; is_ours && i < dimensions; ++i)
    is_ours = reduced.shape[i] == kernel_.space[i].traced;
  if (!is_ours)
    refuse(node, "reduces rows of another shape than the rest of the graph");
  // The row of the result must be the row that the thread block works on.
  const size_t leading = dimensions - 1;
  if (index.size() != (index_is_element || keeps_dim ? dimensions : leading))
    refuse(node, "gives a result of unexpected dimensions");
  for (size_t i = 0; i < leading; ++i) {
    const bool is_same = index[i].dim == static_cast<int>(i) && index[i].offset.empty();
    if (!is_same && reduced.shape[i] != 1)
      refuse(node, "is used by other rows than its own, which no template family does yet");
  }
  return read(reduced.id, identity());
}

int graph_reader::read_column_sum(int64_t id, dtype type) {
  const graph_value* what = &value(id);
  while (true) {
    const auto found = places_.find(what->id);
    if (found == places_.end())
      throw no_template{"an output of one number a column is no sum over the rows"};
    const graph_node& node = *found->second.node;
    // Storing rounds once: nothing on the way may be held in less.
    if (what->dtype != "float32" && what->dtype != name(type))
      refuse(node, fmt::format("is held in {}, unlike the output", what->dtype));
    if (node.op == "sum") {
      const graph_value& x = tensor(node, 0);
      const size_t leading = kernel_.space.size() - 1;
      std::vector<int64_t> dims = read_row_arguments(node).dims;
      for (int64_t& dim : dims)
        dim += dim < 0 ? static_cast<int64_t>(x.shape.size()) : 0;
      std::sort(dims.begin(), dims.end());
      bool is_ours = leading > 0 && dims.size() == leading && x.shape.size() == leading + 1;
      for (size_t i = 0; is_ours && i <= leading; ++i)
        is_ours = x.shape[i] == kernel_.space[i].traced
          && (i == leading || dims[i] == static_cast<int64_t>(i));
      if (!is_ours)
        refuse(node, "sums over other rows than those of the rest of the graph");
      return build_.apply(ir_op::as_number, read(x.id, identity()));
    }
    const bool is_view = is_view_operator(node.op) && node.op != "expand";
    if (!is_view && node.op != "_to_copy" && node.op != "clone")
      refuse(node, "makes an output of one number a column, which is no sum over the rows");
    what = &tensor(node, 0);
    int64_t elements = 1;
    for (int64_t size : what->shape)
      elements *= size;
    if (elements != kernel_.space.back().traced)
      refuse(node, "takes a part of a sum over the rows");
  }
}

int graph_reader::mean_of(int body) {
  return build_.apply(ir_op::div, build_.reduce(reduction_kind::sum, body), build_.row_length());
}

int graph_reader::read_softmax(const graph_node& node, const index_map& index) {
  const graph_value& x = tensor(node, 0);
  const int64_t dim = node.inputs.size() > 1 ? node.inputs[1].integer : -1;
  if (dim != -1 && dim != static_cast<int64_t>(x.shape.size()) - 1)
    refuse(node, "over a dimension other than the last belongs to no template family yet");
  const int body = row_body(node, x, true, index, true);
  const int at_element = read(x.id, index);
  const int top = build_.reduce(reduction_kind::maximum, body);
  const int sum = build_.reduce(
    reduction_kind::sum, build_.apply(ir_op::exp, build_.apply(ir_op::sub, body, top)));
  const int shifted = build_.apply(ir_op::sub, at_element, top);
  if (node.op == "_log_softmax")
    return build_.apply(ir_op::sub, shifted, build_.apply(ir_op::log, sum));
  return build_.apply(ir_op::div, build_.apply(ir_op::exp, shifted), sum);
}

int graph_reader::read_layer_norm(const place& from, const index_map& index) {
  const graph_node& node = *from.node;
  const graph_value& x = tensor(node, 0);
  if (node.inputs.size() < 5 || node.inputs[1].list.size() != 1)
    refuse(node, "over more than the last dimension belongs to no template family yet");
  const bool is_element = from.output == 0;
  const int body = row_body(node, x, true, index, is_element);
  const int mean = mean_of(body);
  if (from.output == 1)
    return mean;
  const int centred = build_.apply(ir_op::sub, body, mean);
  const int variance = mean_of(build_.apply(ir_op::mul, centred, centred));
  const int inverse = build_.apply(
    ir_op::rsqrt, build_.apply(ir_op::add, variance, read_operand(node.inputs[4], x, index)));
  if (from.output == 2)
    return inverse;
  int y = build_.apply(ir_op::mul, build_.apply(ir_op::sub, read(x.id, index), mean), inverse);
  if (node.inputs[2].kind == operand_kind::value)
    y = build_.apply(ir_op::mul, y, read_operand(node.inputs[2], x, index));
  if (node.inputs[3].kind == operand_kind::value)
    y = build_.apply(ir_op::add, y, read_operand(node.inputs[3], x, index));
  return y;
}

int graph_reader::read_variance(const graph_node& node, int body) {
  // Bessel's correction is on unless the call says otherwise.
  double correction = 1;
  if (const graph_operand* given = find_attr(node, "correction");
      given != nullptr && given->kind == operand_kind::integer)
    correction = static_cast<double>(given->integer);
  else if (const graph_operand* unbiased = find_argument(node, 2, "unbiased");
           unbiased != nullptr && unbiased->kind == operand_kind::boolean)
    correction = unbiased->integer != 0 ? 1 : 0;
  const int centred = build_.apply(ir_op::sub, body, mean_of(body));
  const int sum = build_.reduce(reduction_kind::sum, build_.apply(ir_op::mul, centred, centred));
  const int length = build_.row_length();
  const int count =
    correction == 0 ? length : build_.apply(ir_op::sub, length, build_.constant(correction));
  return build_.apply(ir_op::div, sum, count);
}

int graph_reader::read_row(const place& from, const graph_value& what, const index_map& index) {
  const graph_node& node = *from.node;
  const std::string_view op = node.op;
  if (op == "_softmax" || op == "_log_softmax")
    return read_softmax(node, index);
  if (op == "native_layer_norm")
    return read_layer_norm(from, index);
  const graph_value& x = tensor(node, 0);
  const row_arguments arguments = read_row_arguments(node);
  const auto last = static_cast<int64_t>(x.shape.size()) - 1;
  const bool is_last = arguments.has_dims
    ? arguments.dims.size() == 1 && (arguments.dims[0] == -1 || arguments.dims[0] == last)
    : last == 0;
  if (!is_last)
    refuse(node, "over anything but the last dimension belongs to no template family yet");
  const bool keeps_dim = what.shape.size() == x.shape.size();
  const int body = build_.apply(ir_op::as_number, row_body(node, x, keeps_dim, index, false));
  if (op == "sum")
    return build_.reduce(reduction_kind::sum, body);
  if (op == "mean" || (op == "var_mean" && from.output == 1))
    return mean_of(body);
  if (op == "var" || op == "var_mean")
    return read_variance(node, body);
  if (op == "std")
    return build_.apply(ir_op::sqrt, read_variance(node, body));
  if (op == "amax" || op == "amin" || op == "max" || op == "min") {
    if (from.output != 0)
      refuse(node, "as a search for the position belongs to no template family yet");
    return build_.reduce(
      op.ends_with("max") ? reduction_kind::maximum : reduction_kind::minimum, body);
  }
  if (op == "logsumexp") {
    const int top = build_.reduce(reduction_kind::maximum, body);
    const int sum = build_.reduce(
      reduction_kind::sum, build_.apply(ir_op::exp, build_.apply(ir_op::sub, body, top)));
    return build_.apply(ir_op::add, build_.apply(ir_op::log, sum), top);
  }
  // Vector norms of order 2 and 1.
  const graph_operand* order = find_argument(node, 1, "ord");
  const double p = order == nullptr        ? 2
    : order->kind == operand_kind::integer ? static_cast<double>(order->integer)
                                           : order->number;
  if (p == 2)
    return build_.apply(
      ir_op::sqrt, build_.reduce(reduction_kind::sum, build_.apply(ir_op::mul, body, body)));
  if (p == 1)
    return build_.reduce(reduction_kind::sum, build_.apply(ir_op::abs, body));
  refuse(node, fmt::format("of order {} belongs to no template family yet", p));
}

} // namespace gristmill
