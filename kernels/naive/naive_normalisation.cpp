#include "kernels/naive/naive_fold.hpp"
#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

using names = std::vector<std::string>;

std::string inner_type(const naive_call& call) {
  return call.type() == "double" ? "double" : "float";
}

// ---- softmax and its backward ----

size_t softmax_dim_place(const naive_call& call) {
  return call.op().ends_with("_backward_data") ? 2 : 1;
}

std::vector<size_t> softmax_dims(const naive_call& call) {
  const size_t rank = call.result().shape.size();
  if (rank == 0)
    return {};
  return {call.dimension(call.integer(softmax_dim_place(call), "dim", -1), rank)};
}

names softmax_prologue(const naive_call& call, const naive_index& row) {
  const std::string inner = inner_type(call);
  auto fold = naive_fold::at(call, call.tensor(0), softmax_dims(call), row);
  const auto read = [&](const naive_index& at) { return call.read(fold.from(), at, inner); };
  const std::string top = fold.extreme(inner, true, read).first;
  const std::string total = fold.sum("double",
    [&](const naive_index& at) { return fmt::format("double(exp({} - {}))", read(at), top); });
  return {top, total};
}

std::string softmax_element(const naive_call& call, const names& row, const naive_index& index) {
  const std::string inner = inner_type(call);
  const std::string off = fmt::format("({} - {})", call.read(call.tensor(0), index, inner), row[0]);
  if (call.op() == "_log_softmax")
    return naive_converted(
      fmt::format("(double({}) - log({}))", off, row[1]), "double", call.type());
  return naive_converted(fmt::format("exp({}) / {}({})", off, inner, row[1]), inner, call.type());
}

names softmax_backward_prologue(const naive_call& call, const naive_index& row) {
  auto fold = naive_fold::at(call, call.tensor(0), softmax_dims(call), row);
  const bool is_log = call.op().starts_with("_log");
  return {fold.sum("double", [&](const naive_index& at) {
    const std::string grad = call.read(call.tensor(0), at, "double");
    return is_log ? grad : fmt::format("{} * {}", grad, call.read(call.tensor(1), at, "double"));
  })};
}

std::string softmax_backward_element(
  const naive_call& call, const names& row, const naive_index& index) {
  const std::string grad = call.read(call.tensor(0), index, "double");
  const std::string out = call.read(call.tensor(1), index, "double");
  return naive_converted(call.op().starts_with("_log")
      ? fmt::format("({} - exp({}) * {})", grad, out, row[0])
      : fmt::format("({} * ({} - {}))", out, grad, row[0]),
    "double", call.type());
}

// ---- normalisations ----

/// Mean and one over the standard deviation of what a fold walks over.
names moments(const naive_call& call, naive_fold& fold, const std::string& eps) {
  const auto read = [&](const naive_index& at) { return call.read(fold.from(), at, "double"); };
  const std::string mean =
    call.w.let("double", fmt::format("{} / double({})", fold.sum("double", read), fold.count()));
  const std::string squares = fold.sum("double", [&](const naive_index& at) {
    const std::string off = call.w.let("double", fmt::format("{} - {}", read(at), mean));
    return fmt::format("{0} * {0}", off);
  });
  const std::string scale = call.w.let(
    "double", fmt::format("1.0 / sqrt({} / double({}) + {})", squares, fold.count(), eps));
  return {mean, scale};
}

/// The normalised element with weight and bias at an index of their own.
std::string affine(
  const naive_call& call, const names& row, const naive_index& index, const naive_index& channel) {
  std::string text =
    fmt::format("({} - {}) * {}", call.read(call.tensor(0), index, "double"), row[0], row[1]);
  if (call.has(call.op() == "native_layer_norm" ? 2 : 1))
    text = fmt::format("{} * {}", text,
      call.read(call.tensor(call.op() == "native_layer_norm" ? 2 : 1), channel, "double"));
  if (call.has(call.op() == "native_layer_norm" ? 3 : 2))
    text = fmt::format("{} + {}", text,
      call.read(call.tensor(call.op() == "native_layer_norm" ? 3 : 2), channel, "double"));
  return naive_converted(fmt::format("({})", text), "double", call.type());
}

/// Mean or scale for the second and third result.
std::string moment(const naive_call& call, const names& row) {
  return naive_converted(row[call.output - 1], "double", call.type());
}

std::vector<size_t> trailing(size_t rank, size_t count) {
  std::vector<size_t> dims;
  for (size_t i = rank - count; i < rank; ++i)
    dims.push_back(i);
  return dims;
}

std::vector<size_t> layer_norm_reduced(const naive_call& call) {
  const size_t rank = call.rank(call.tensor(0));
  const size_t count = call.integers(1, "normalized_shape").size();
  if (count > rank || count == 0)
    call.refuse("normalises none of its dimensions, or more than there are");
  return trailing(rank, count);
}

std::vector<size_t> layer_norm_dims(const naive_call& call) {
  return call.output == 0 ? layer_norm_reduced(call) : std::vector<size_t>{};
}

names layer_norm_prologue(const naive_call& call, const naive_index& row) {
  auto fold = naive_fold::at(call, call.tensor(0), layer_norm_reduced(call), row);
  return moments(call, fold, call.number(4, "eps", "double", 1e-5));
}

std::string layer_norm_element(const naive_call& call, const names& row, const naive_index& index) {
  if (call.output > 0)
    return moment(call, row);
  const auto reduced = layer_norm_reduced(call);
  const naive_index channel(
    index.begin() + static_cast<std::ptrdiff_t>(reduced.front()), index.end());
  return affine(call, row, index, channel);
}

/// Every dimension behind the channels.
std::vector<size_t> group_norm_dims(const naive_call& call) {
  const size_t rank = call.rank(call.tensor(0));
  return call.output == 0 && rank > 2 ? trailing(rank, rank - 2) : std::vector<size_t>{};
}

names group_norm_prologue(const naive_call& call, const naive_index& row) {
  const int64_t from = call.tensor(0);
  const int64_t groups = call.integer(6, "group", 1);
  const auto shape = call.w.shape(from);
  const std::string channels =
    call.w.let("int64_t", fmt::format("{} / int64_t({})", shape.at(1), groups));
  const std::string first = call.w.let("int64_t",
    call.output == 0 ? fmt::format("{0} / {1} * {1}", row.at(1), channels)
                     : fmt::format("{} * {}", row.at(1), channels));
  std::vector<std::string> sizes(shape.begin() + 1, shape.end());
  sizes[0] = channels;
  std::string count = channels;
  for (size_t i = 1; i < sizes.size(); ++i)
    count += " * " + sizes[i];
  const std::string total = call.w.let("int64_t", count);
  // Two walks over the group, whose channels lie one after the other.
  const auto walk = [&](const auto& body) {
    const std::string sum = call.w.variable("double", "0.0");
    const std::string number = call.w.shared_loop(total);
    naive_index index = call.w.unravelled(sizes, number);
    index[0] = fmt::format("({} + {})", first, index[0]);
    index.insert(index.begin(), row.at(0));
    call.w.line(
      fmt::format("{} += {};", sum, body(call.w.let("double", call.read(from, index, "double")))));
    call.w.close();
    if (call.w.lanes() > 1) {
      call.w.line("for (int distance = 16; distance > 0; distance /= 2)");
      call.w.line(fmt::format("  {0} += __shfl_xor_sync(0xffffffffu, {0}, distance);", sum));
    }
    return sum;
  };
  const std::string mean = call.w.let(
    "double", fmt::format("{} / double({})", walk([](const std::string& x) { return x; }), total));
  const std::string squares =
    walk([&](const std::string& x) { return fmt::format("({0} - {1}) * ({0} - {1})", x, mean); });
  return {mean,
    call.w.let("double",
      fmt::format("1.0 / sqrt({} / double({}) + {})", squares, total,
        call.number(7, "eps", "double", 1e-5)))};
}

std::string channel_element(const naive_call& call, const names& row, const naive_index& index) {
  return call.output > 0 ? moment(call, row) : affine(call, row, index, {index.at(1)});
}

bool uses_batch(const naive_call& call) {
  return call.op() == "native_batch_norm" && call.flag(5, "training", false);
}

std::vector<size_t> batch_norm_dims(const naive_call& call) {
  const size_t rank = call.rank(call.tensor(0));
  if (call.output > 0 || rank < 2)
    return {};
  if (!uses_batch(call))
    return trailing(rank, rank - 2);
  std::vector<size_t> dims = trailing(rank, rank - 2);
  dims.insert(dims.begin(), 0);
  return dims;
}

names batch_norm_prologue(const naive_call& call, const naive_index& row) {
  const int64_t from = call.tensor(0);
  const std::string channel = call.output == 0 ? row.at(1) : row.at(0);
  const std::string eps = call.number(7, "eps", "double", 1e-5);
  if (call.rank(from) < 2)
    call.refuse("needs a dimension for the batch and one for the channels");
  if (!uses_batch(call))
    return {call.w.let("double", call.read(call.tensor(3), {channel}, "double")),
      call.w.let("double",
        fmt::format("1.0 / sqrt({} + {})", call.read(call.tensor(4), {channel}, "double"), eps))};
  std::vector<size_t> reduced = trailing(call.rank(from), call.rank(from) - 2);
  reduced.insert(reduced.begin(), 0);
  naive_index at(call.rank(from));
  at[1] = channel;
  auto fold = naive_fold::at(call, from, reduced, at);
  return moments(call, fold, eps);
}

} // namespace

void add_naive_normalisation(naive_row_table& table) {
  for (const char* op : {"_softmax", "_log_softmax"})
    table[op] = {softmax_dims, softmax_prologue, softmax_element};
  for (const char* op : {"_softmax_backward_data", "_log_softmax_backward_data"})
    table[op] = {softmax_dims, softmax_backward_prologue, softmax_backward_element};
  table["native_layer_norm"] = {layer_norm_dims, layer_norm_prologue, layer_norm_element};
  table["native_group_norm"] = {group_norm_dims, group_norm_prologue, channel_element};
  table["native_batch_norm"] = {batch_norm_dims, batch_norm_prologue, channel_element};
}

} // namespace gristmill
