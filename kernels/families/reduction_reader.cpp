#include "kernels/families/reduction_reader.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool is_softmax(std::string_view op) {
  return is_one_of(
    op, {"_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"});
}

bool is_true(const graph_operand* operand) {
  return operand != nullptr
    && (operand->kind == operand_kind::boolean || operand->kind == operand_kind::integer)
    && operand->integer != 0;
}

/// Dimensions in the arguments of a plain reduction; all when it names none.
std::vector<int64_t> named_dims(const graph_node& node) {
  const std::string_view op = plain_op(node.op);
  const bool has_order = op == "linalg_vector_norm" || op == "norm";
  const graph_operand* dims = argument_of(node, has_order ? 2 : 1, "dim");
  if (dims == nullptr)
    return {};
  if (dims->kind == operand_kind::integer)
    return {dims->integer};
  return dims->kind == operand_kind::integers ? dims->list : std::vector<int64_t>{};
}

double correction_of(const graph_node& node) {
  if (const graph_operand* given = find_attr(node, "correction");
      given != nullptr && given->kind == operand_kind::integer)
    return static_cast<double>(given->integer);
  const graph_operand* unbiased = argument_of(node, 2, "unbiased");
  if (unbiased != nullptr && unbiased->kind == operand_kind::boolean)
    return unbiased->integer != 0 ? 1 : 0;
  // var(x, unbiased) has the switch where others have dimensions.
  const graph_operand* second = argument_of(node, 1, "unbiased");
  if (second != nullptr && second->kind == operand_kind::boolean)
    return second->integer != 0 ? 1 : 0;
  return 1;
}

} // namespace

size_pair dim_run::product() const {
  size_pair all;
  for (size_pair one : sizes)
    all = all * one;
  return all;
}

std::vector<dim_run> reduced_shape::runs() const {
  std::vector<dim_run> list;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == size_pair{1, 1})
      continue;
    if (list.empty() || list.back().is_reduced != is_reduced[i])
      list.push_back({is_reduced[i], {}});
    list.back().sizes.push_back(sizes[i]);
  }
  return list;
}

bool reduced_shape::has_same_runs(const reduced_shape& other) const {
  const auto a = runs();
  const auto b = other.runs();
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.is_reduced == y.is_reduced && x.product() == y.product();
  });
}

bool is_reducing_operator(std::string_view op) {
  static const std::set<std::string_view> table = {"sum", "mean", "amax", "amin", "max", "min",
    "argmax", "argmin", "prod", "any", "all", "var", "std", "var_mean", "logsumexp",
    "linalg_vector_norm", "norm", "_softmax", "_log_softmax", "_softmax_backward_data",
    "_log_softmax_backward_data", "native_layer_norm", "native_layer_norm_backward",
    "native_group_norm", "native_batch_norm"};
  return table.contains(plain_op(op));
}

reduction_reader::reduction_reader(value_writer& writer) : writer_(writer) {
  writer.set_hook([this](const graph_node& node, size_t output,
                    const std::vector<index_id>& index) { return read(node, output, index); });
}

const graph_value& reduction_reader::operand(const graph_node& node, size_t) const {
  // Of a gradient the second tensor is the one that was normalised.
  const size_t position = plain_op(node.op) == "native_layer_norm_backward" ? 1 : 0;
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
    refuse_node(node, "has no tensor to reduce");
  return writer_.value(node.inputs[position].value);
}

reduced_shape reduction_reader::shape_of(const graph_node& node, size_t output) const {
  const std::string_view op = plain_op(node.op);
  const graph_value& x = operand(node, output);
  reduced_shape shape{traced_shape(x), std::vector<bool>(x.shape.size(), false)};
  if (is_softmax(op)) {
    const size_t at = op.ends_with("_backward_data") ? 2 : 1;
    shape.is_reduced[front_dimension(node, integer_argument(node, at, "dim", -1), x.shape.size())] =
      true;
    return shape;
  }
  if (op == "native_layer_norm" || op == "native_layer_norm_backward") {
    const size_t at = op == "native_layer_norm" ? 1 : 2;
    const size_t count = node.inputs.size() > at ? node.inputs[at].list.size() : 0;
    if (count == 0 || count > x.shape.size())
      refuse_node(node, "has no normalised shape");
    const bool is_row = op == "native_layer_norm" || output == 0;
    // The gradients of weight and bias are sums over the other dimensions.
    for (size_t i = 0; i < x.shape.size(); ++i)
      shape.is_reduced[i] = (i >= x.shape.size() - count) == is_row;
    return shape;
  }
  if (op == "native_group_norm") {
    const int64_t groups = integer_argument(node, 6, "group", 1);
    const size_pair channels = shape.sizes.at(1);
    if (groups < 1 || channels.first % groups != 0 || channels.second % groups != 0)
      refuse_node(node, "has groups that do not divide the channels");
    shape.sizes[1] = {groups, groups};
    shape.sizes.insert(
      shape.sizes.begin() + 2, size_pair{channels.first / groups, channels.second / groups});
    shape.is_reduced.assign(shape.sizes.size(), true);
    shape.is_reduced[0] = shape.is_reduced[1] = false;
    return shape;
  }
  if (op == "native_batch_norm") {
    if (!is_true(argument_of(node, 5, "training")))
      refuse_node(node, "with given statistics belongs to no template family yet");
    shape.is_reduced.assign(shape.sizes.size(), true);
    shape.is_reduced.at(1) = false;
    return shape;
  }
  const auto dims = named_dims(node);
  if (dims.empty())
    shape.is_reduced.assign(shape.sizes.size(), true);
  for (int64_t dim : dims)
    shape.is_reduced[front_dimension(node, dim, x.shape.size())] = true;
  return shape;
}

void reduction_reader::set_space(reduced_shape space, std::vector<index_id> run_indices) {
  space_ = std::move(space);
  run_indices_ = std::move(run_indices);
}

std::vector<index_id> reduction_reader::index_here(const graph_node& node, size_t output) {
  const reduced_shape shape = shape_of(node, output);
  if (!shape.has_same_runs(space_))
    refuse_node(node, "reduces other rows than the rest of the graph");
  index_pool& pool = writer_.pool();
  std::vector<index_id> index(shape.sizes.size(), pool.constant(0));
  size_t run = 0;
  size_t at = 0;
  for (const dim_run& one : shape.runs()) {
    const auto parts = pool.unflat(run_indices_[run++], pool.shape(one.sizes));
    for (index_id part : parts) {
      while (shape.sizes[at] == size_pair{1, 1})
        ++at;
      index[at++] = part;
    }
  }
  const graph_value& x = operand(node, output);
  return through_view(pool, traced_shape(x), shape.sizes, index);
}

void reduction_reader::check_row(
  const graph_node& node, size_t output, const std::vector<index_id>& index) {
  // `index` is that of an element of the operand: it must lie in the row that is worked on.
  const reduced_shape shape = shape_of(node, output);
  if (!shape.has_same_runs(space_))
    refuse_node(node, "reduces other rows than the rest of the graph");
  index_pool& pool = writer_.pool();
  const auto split = through_view(pool, shape.sizes, traced_shape(operand(node, output)), index);
  size_t run = 0;
  std::vector<index_id> parts;
  std::vector<size_pair> sizes;
  const auto runs = shape.runs();
  const auto finish = [&] {
    if (!runs[run].is_reduced && pool.flat(parts, pool.shape(sizes)) != run_indices_[run])
      refuse_node(node, "is used by other rows than its own, which no template family does yet");
    ++run;
    parts.clear();
    sizes.clear();
  };
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    if (shape.sizes[i] == size_pair{1, 1})
      continue;
    if (!sizes.empty() && shape.is_reduced[i] != runs[run].is_reduced)
      finish();
    parts.push_back(split[i]);
    sizes.push_back(shape.sizes[i]);
  }
  if (!sizes.empty())
    finish();
}

std::string reduction_reader::count_text(const graph_node& node, size_t output) {
  const reduced_shape shape = shape_of(node, output);
  std::vector<size_pair> sizes;
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    if (shape.is_reduced[i])
      sizes.push_back(shape.sizes[i]);
  }
  index_pool& pool = writer_.pool();
  const std::string text = writer_.text(pool.product(pool.shape(sizes)));
  return fmt::format("float({})", text);
}

std::string reduction_reader::get(const graph_node& node, size_t output, size_t which) {
  const row_number number{&node, output, which};
  const auto found = known_.find(number);
  if (found == known_.end())
    throw missing_number{number};
  return found->second.text;
}

combine_kind reduction_reader::kind_of(const row_number& number) const {
  const std::string_view op = plain_op(number.node->op);
  const bool is_place =
    op == "argmax" || op == "argmin" || ((op == "max" || op == "min") && number.output == 1);
  if (is_place)
    return op.ends_with("max") ? combine_kind::place_of_maximum : combine_kind::place_of_minimum;
  if (is_one_of(op, {"amax", "max", "any"}))
    return combine_kind::maximum;
  if (is_one_of(op, {"amin", "min", "all"}))
    return combine_kind::minimum;
  if (op == "prod")
    return combine_kind::product;
  if ((op == "_softmax" || op == "_log_softmax" || op == "logsumexp") && number.which == 0)
    return combine_kind::maximum;
  return combine_kind::sum;
}

bool reduction_reader::is_integer(const row_number& number) const {
  const combine_kind kind = kind_of(number);
  if (kind == combine_kind::place_of_maximum || kind == combine_kind::place_of_minimum)
    return true;
  const graph_value& result = writer_.value(number.node->outputs[number.output]);
  return gristmill::kind_of(result.dtype) != number_kind::number;
}

index_id reduction_reader::place(const row_number& number) {
  const auto index = index_here(*number.node, number.output);
  const reduced_shape shape = shape_of(*number.node, number.output);
  std::vector<index_id> parts;
  std::vector<size_pair> sizes;
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    if (!shape.is_reduced[i])
      continue;
    parts.push_back(index[i]);
    sizes.push_back(shape.sizes[i]);
  }
  return writer_.pool().flat(parts, writer_.pool().shape(sizes));
}

std::string reduction_reader::operand_text(
  const graph_node& node, size_t position, const std::vector<index_id>& index) {
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
    refuse_node(node, fmt::format("has no tensor as its argument {}", position));
  return writer_.read_as(node.inputs[position].value, index, number_kind::number);
}

written_value reduction_reader::body(const row_number& number) {
  const graph_node& node = *number.node;
  const std::string_view op = plain_op(node.op);
  const size_t output = number.output;
  const auto index = index_here(node, output);
  const auto made = [](std::string text) {
    return written_value{std::move(text), number_kind::number};
  };
  if (op == "_softmax_backward_data")
    return made(fmt::format("{} * {}", operand_text(node, 0, index), operand_text(node, 1, index)));
  if (op == "_log_softmax_backward_data")
    return made(operand_text(node, 0, index));
  if (op == "native_layer_norm_backward") {
    const std::string gradient = operand_text(node, 0, index);
    if (output == 2)
      return made(gradient);
    const graph_value& mean = writer_.value(node.inputs.at(3).value);
    std::vector<index_id> row(index.begin(),
      index.begin() + static_cast<std::ptrdiff_t>(index.size() - node.inputs[2].list.size()));
    row.resize(mean.shape.size(), writer_.pool().constant(0));
    const std::string centred = fmt::format("({} - {}) * {}", operand_text(node, 1, index),
      operand_text(node, 3, row), operand_text(node, 4, row));
    if (output == 1)
      return made(fmt::format("{} * ({})", gradient, centred));
    std::string weighted = gradient;
    if (node.inputs.size() > 5 && node.inputs[5].kind == operand_kind::value) {
      const std::vector<index_id> column(
        index.end() - static_cast<std::ptrdiff_t>(node.inputs[2].list.size()), index.end());
      weighted = fmt::format("{} * {}", gradient, operand_text(node, 5, column));
    }
    return made(number.which == 0 ? weighted : fmt::format("{} * ({})", weighted, centred));
  }
  const graph_value& x = operand(node, output);
  const combine_kind kind = kind_of(number);
  if (is_integer(number) && kind != combine_kind::place_of_maximum
    && kind != combine_kind::place_of_minimum) {
    // `any` and `all` count truths.
    const bool is_truth = op == "any" || op == "all";
    const std::string value =
      writer_.read_as(x.id, index, is_truth ? number_kind::truth : number_kind::integer);
    return {is_truth ? fmt::format("int64_t({})", value) : value, number_kind::integer};
  }
  const std::string value = writer_.read_as(x.id, index, number_kind::number);
  const bool is_moments = is_one_of(
    op, {"var", "std", "var_mean", "native_layer_norm", "native_group_norm", "native_batch_norm"});
  if (is_moments && number.which == 1) {
    const std::string centred =
      fmt::format("({} - {} / {})", value, get(node, 0, 0), count_text(node, output));
    return made(fmt::format("{0} * {0}", centred));
  }
  if (is_one_of(op, {"_softmax", "_log_softmax", "logsumexp"}) && number.which == 1)
    return made(fmt::format("expf({} - {})", value, get(node, output, 0)));
  if (op == "linalg_vector_norm" || op == "norm") {
    const graph_operand* order = argument_of(node, 1, "ord");
    const double p = order == nullptr        ? 2
      : order->kind == operand_kind::integer ? static_cast<double>(order->integer)
                                             : order->number;
    if (p == 2)
      return made(fmt::format("{0} * {0}", value));
    if (p == 1)
      return made(fmt::format("fabsf({})", value));
    refuse_node(node, fmt::format("of order {} belongs to no template family yet", p));
  }
  return made(value);
}

std::optional<std::string> reduction_reader::channel_text(
  const graph_node& node, size_t position, index_id channel) {
  if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
    return std::nullopt;
  return operand_text(node, position, {channel});
}

written_value reduction_reader::element(
  const graph_node& node, size_t output, const std::vector<index_id>& index) {
  const std::string_view op = plain_op(node.op);
  const auto made = [](std::string text) {
    return written_value{std::move(text), number_kind::number};
  };
  const auto number = [&](size_t which) { return get(node, output, which); };
  if (op == "_softmax" || op == "_log_softmax") {
    const std::string shifted = fmt::format("{} - {}", operand_text(node, 0, index), number(0));
    return made(op == "_softmax" ? fmt::format("expf({}) / {}", shifted, number(1))
                                 : fmt::format("{} - logf({})", shifted, number(1)));
  }
  if (op == "_softmax_backward_data")
    return made(fmt::format(
      "{} * ({} - {})", operand_text(node, 1, index), operand_text(node, 0, index), number(0)));
  if (op == "_log_softmax_backward_data")
    return made(fmt::format(
      "{} - expf({}) * {}", operand_text(node, 0, index), operand_text(node, 1, index), number(0)));
  if (op == "native_layer_norm_backward") {
    const size_t count = node.inputs[2].list.size();
    const graph_value& mean = writer_.value(node.inputs.at(3).value);
    std::vector<index_id> row(
      index.begin(), index.begin() + static_cast<std::ptrdiff_t>(index.size() - count));
    row.resize(mean.shape.size(), writer_.pool().constant(0));
    std::string gradient = operand_text(node, 0, index);
    if (node.inputs.size() > 5 && node.inputs[5].kind == operand_kind::value) {
      const std::vector<index_id> column(
        index.end() - static_cast<std::ptrdiff_t>(count), index.end());
      gradient = fmt::format("{} * {}", gradient, operand_text(node, 5, column));
    }
    const std::string inverse = operand_text(node, 4, row);
    const std::string length = count_text(node, output);
    return made(
      fmt::format("{3} * ({0} - {1} / {5} - ({2} - {4}) * {3} * ({6} / {5}))", gradient, number(0),
        operand_text(node, 1, index), inverse, operand_text(node, 3, row), length, number(1)));
  }
  // Normalisations: mean, and the root of the variance.
  const std::string length = count_text(node, output);
  const std::string mean = fmt::format("{} / {}", get(node, 0, 0), length);
  const size_t eps = op == "native_layer_norm" ? 4 : 7;
  if (node.inputs.size() <= eps)
    refuse_node(node, "lacks its epsilon");
  const std::string variance = fmt::format("{} / {}", get(node, 0, 1), length);
  const std::string inverse = fmt::format("rsqrtf({} + {})", variance,
    converted(
      writer_.read_operand(node.inputs[eps], operand(node, output), index), number_kind::number));
  std::string y = fmt::format("({} - {}) * {}", operand_text(node, 0, index), mean, inverse);
  if (op == "native_layer_norm") {
    const std::vector<index_id> column(
      index.end() - static_cast<std::ptrdiff_t>(node.inputs[1].list.size()), index.end());
    if (node.inputs[2].kind == operand_kind::value)
      y = fmt::format("{} * {}", y, operand_text(node, 2, column));
    if (node.inputs[3].kind == operand_kind::value)
      y = fmt::format("{} + {}", y, operand_text(node, 3, column));
    return made(y);
  }
  if (const auto weight = channel_text(node, 1, index.at(1)))
    y = fmt::format("{} * {}", y, *weight);
  if (const auto bias = channel_text(node, 2, index.at(1)))
    y = fmt::format("{} + {}", y, *bias);
  return made(y);
}

std::optional<written_value> reduction_reader::read(
  const graph_node& node, size_t output, const std::vector<index_id>& index) {
  const std::string_view op = plain_op(node.op);
  if (!is_reducing_operator(op))
    return std::nullopt;
  const graph_value& result = writer_.value(node.outputs[output]);
  const auto rounded = [&](std::string text, number_kind kind = number_kind::number) {
    return writer_.rounded(result.dtype, {std::move(text), kind});
  };
  const bool is_norm =
    is_one_of(op, {"native_layer_norm", "native_group_norm", "native_batch_norm"});
  if (is_softmax(op) || (is_norm && output == 0)
    || (op == "native_layer_norm_backward" && output == 0)) {
    check_row(node, output, index);
    const written_value value = element(node, output, index);
    return rounded(value.text);
  }
  // A number of the row: put the index back among the dimensions of the operand.
  const reduced_shape shape = shape_of(node, output);
  const graph_value& x = operand(node, output);
  std::vector<index_id> full(x.shape.size(), writer_.pool().constant(0));
  if (is_norm && op != "native_layer_norm") {
    // One for each channel, or for each group of each sample.
    const size_t first = op == "native_group_norm" ? 0 : 1;
    std::vector<index_id> split(shape.sizes.size(), writer_.pool().constant(0));
    for (size_t i = 0; i < index.size(); ++i)
      split.at(first + i) = index[i];
    full = through_view(writer_.pool(), traced_shape(x), shape.sizes, split);
  } else if (index.size() == x.shape.size()) {
    full = index;
  } else {
    size_t next = 0;
    for (size_t i = 0; i < full.size(); ++i) {
      if (!shape.is_reduced[i] && next < index.size())
        full[i] = index[next++];
    }
  }
  check_row(node, output, full);
  const auto number = [&](size_t which) { return get(node, output, which); };
  if (is_norm) {
    const std::string length = count_text(node, output);
    if (output == 1)
      return rounded(fmt::format("{} / {}", get(node, 0, 0), length));
    const size_t eps = op == "native_layer_norm" ? 4 : 7;
    return rounded(fmt::format("rsqrtf({} / {} + {})", get(node, 0, 1), length,
      converted(writer_.read_operand(node.inputs.at(eps), x, full), number_kind::number)));
  }
  if (op == "native_layer_norm_backward")
    return rounded(number(0));
  if (op == "mean")
    return rounded(fmt::format("{} / {}", number(0), count_text(node, output)));
  if (op == "var_mean" && output == 1)
    return rounded(fmt::format("{} / {}", get(node, 0, 0), count_text(node, output)));
  if (is_one_of(op, {"var", "std", "var_mean"})) {
    const std::string variance = fmt::format(
      "{} / ({} - {:.1f}f)", get(node, 0, 1), count_text(node, output), correction_of(node));
    return rounded(op == "std" ? fmt::format("sqrtf({})", variance) : variance);
  }
  if (op == "logsumexp")
    return rounded(fmt::format("logf({}) + {}", number(1), number(0)));
  if (op == "linalg_vector_norm" || op == "norm") {
    const graph_operand* order = argument_of(node, 1, "ord");
    const bool is_one = order != nullptr
      && (order->kind == operand_kind::integer ? order->integer == 1 : order->number == 1);
    return rounded(is_one ? number(0) : fmt::format("sqrtf({})", number(0)));
  }
  const row_number of{&node, output, 0};
  return rounded(number(0), is_integer(of) ? number_kind::integer : number_kind::number);
}

} // namespace gristmill
