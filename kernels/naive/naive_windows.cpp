#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// Spatial dimensions that a name such as "avg_pool2d" speaks of.
size_t spatial_of(const naive_call& call) {
  const std::string op = call.op();
  for (size_t count : {size_t{1}, size_t{2}, size_t{3}}) {
    if (op.find(fmt::format("{}d", count)) == std::string::npos)
      continue;
    if (call.rank(call.tensor(0)) < count || call.result().shape.size() < count)
      call.refuse("works on a tensor with too few dimensions");
    return count;
  }
  call.refuse("works on an unknown number of dimensions");
}

struct window_lists {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;
};

/// The lists of a pooling operator, whose first list is argument `place`.
window_lists lists_of(const naive_call& call, size_t place, bool has_dilation) {
  const size_t spatial = spatial_of(call);
  window_lists lists;
  lists.kernel = call.integers_for(place, "kernel_size", spatial, 1);
  lists.stride = call.integers(place + 1, "stride").empty()
    ? lists.kernel
    : call.integers_for(place + 1, "stride", spatial, 1);
  lists.padding = call.integers_for(place + 2, "padding", spatial, 0);
  lists.dilation = has_dilation ? call.integers_for(place + 3, "dilation", spatial, 1)
                                : std::vector<int64_t>(spatial, 1);
  for (size_t i = 0; i < spatial; ++i) {
    if (lists.stride[i] < 1 || lists.dilation[i] < 1 || lists.kernel[i] < 1)
      call.refuse("has a window, stride or dilation below 1");
  }
  return lists;
}

/// Row-major number of an element among the spatial dimensions.
std::string place_in_plane(const naive_call& call, int64_t of, const naive_index& spatial_index) {
  const size_t first = call.rank(of) - spatial_index.size();
  std::vector<std::string> sizes;
  for (size_t i = 0; i < spatial_index.size(); ++i)
    sizes.push_back(call.w.size(of, first + i));
  return call.w.linear(sizes, spatial_index);
}

naive_index joined(const naive_index& index, size_t spatial, const naive_index& places) {
  naive_index out(index.begin(), index.end() - static_cast<std::ptrdiff_t>(spatial));
  out.insert(out.end(), places.begin(), places.end());
  return out;
}

std::string max_pool(const naive_call& call, const naive_index& index) {
  const int64_t input = call.tensor(0);
  const size_t spatial = spatial_of(call);
  const auto lists = lists_of(call, 1, true);
  const size_t first = index.size() - spatial;
  const std::string type = call.w.type_of(input);
  const std::string best = call.w.variable(type, naive_lowest(type));
  const std::string place = call.w.variable("int64_t", "int64_t(-1)");
  naive_index places;
  std::string inside;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string tap = call.w.loop(fmt::format("int64_t({})", lists.kernel[i]));
    places.push_back(call.w.let("int64_t",
      fmt::format("{} * int64_t({}) + {} * int64_t({}) - int64_t({})", index[first + i],
        lists.stride[i], tap, lists.dilation[i], lists.padding[i])));
    inside += fmt::format("{0}{1} >= 0 && {1} < {2}", i == 0 ? "" : " && ", places.back(),
      call.w.size(input, first + i));
  }
  call.w.open(fmt::format("if ({})", inside));
  const std::string x = call.w.let(type, call.read(input, joined(index, spatial, places), type));
  call.w.open(fmt::format("if ({0} < 0 || {1} > {2} || {1} != {1})", place, x, best));
  call.w.line(fmt::format("{} = {};", best, x));
  call.w.line(fmt::format("{} = {};", place, place_in_plane(call, input, places)));
  call.w.close();
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return call.output == 1 ? place : best;
}

/// Opens a loop over the offsets of a window that, seen from an input element, leads to the outputs
/// that read it; returns the output's place and the condition that there is one.
std::pair<std::string, std::string> open_reader(const naive_call& call, const window_lists& lists,
  size_t i, const std::string& at, const std::string& out_size) {
  const std::string tap = call.w.loop(fmt::format("int64_t({})", lists.kernel[i]));
  const std::string past = call.w.let("int64_t",
    fmt::format(
      "{} + int64_t({}) - {} * int64_t({})", at, lists.padding[i], tap, lists.dilation[i]));
  const std::string place =
    call.w.let("int64_t", fmt::format("{} / int64_t({})", past, lists.stride[i]));
  return {place,
    fmt::format(
      "{0} >= 0 && {0} % int64_t({1}) == 0 && {2} < {3}", past, lists.stride[i], place, out_size)};
}

std::string max_pool_backward(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t grad = call.tensor(0);
  const int64_t chosen = call.tensor(7, "indices");
  const size_t spatial = spatial_of(call);
  const auto lists = lists_of(call, 2, true);
  const size_t first = index.size() - spatial;
  const std::string total = call.w.variable("double", "0.0");
  naive_index places;
  std::string inside;
  for (size_t i = 0; i < spatial; ++i) {
    const auto [place, more] =
      open_reader(call, lists, i, index[first + i], call.w.size(grad, first + i));
    places.push_back(place);
    inside += (i == 0 ? "" : " && ") + more;
  }
  call.w.open(fmt::format("if ({})", inside));
  const naive_index at = joined(index, spatial, places);
  const naive_index own(index.begin() + static_cast<std::ptrdiff_t>(first), index.end());
  call.w.open(fmt::format("if ({} == {})", call.read(chosen, at, "int64_t"),
    place_in_plane(call, call.node.outputs[0], own)));
  call.w.line(fmt::format("{} += {};", total, call.read(grad, at, "double")));
  call.w.close();
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return naive_converted(total, "double", type);
}

/// What an average over the window of output `places` divides by.
std::string divisor(const naive_call& call, size_t place, const window_lists& lists,
  const naive_index& places, const std::vector<std::string>& sizes) {
  if (call.has(place + 2, "divisor_override"))
    return call.number(place + 2, "divisor_override", "double", 1);
  const bool counts_padding = call.flag(place + 1, "count_include_pad", true);
  std::string count = "double(1)";
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string begin = call.w.let("int64_t",
      fmt::format("{} * int64_t({}) - int64_t({})", places[i], lists.stride[i], lists.padding[i]));
    const std::string end = call.w.let("int64_t",
      fmt::format("{0} + int64_t({1}) < {2} + int64_t({3}) ? {0} + int64_t({1}) : {2} + "
                  "int64_t({3})",
        begin, lists.kernel[i], sizes[i], lists.padding[i]));
    count += counts_padding
      ? fmt::format(" * double({} - {})", end, begin)
      : fmt::format(
        " * double(({0} < {1} ? {0} : {1}) - ({2} > 0 ? {2} : int64_t(0)))", end, sizes[i], begin);
  }
  return call.w.let("double", count);
}

std::vector<std::string> spatial_sizes(const naive_call& call, int64_t of, size_t spatial) {
  std::vector<std::string> sizes;
  for (size_t i = call.rank(of) - spatial; i < call.rank(of); ++i)
    sizes.push_back(call.w.size(of, i));
  return sizes;
}

std::string avg_pool(const naive_call& call, const naive_index& index) {
  const int64_t input = call.tensor(0);
  const size_t spatial = spatial_of(call);
  const auto lists = lists_of(call, 1, false);
  const size_t first = index.size() - spatial;
  const naive_index own(index.begin() + static_cast<std::ptrdiff_t>(first), index.end());
  const auto sizes = spatial_sizes(call, input, spatial);
  const std::string total = call.w.variable("double", "0.0");
  naive_index places;
  std::string inside;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string tap = call.w.loop(fmt::format("int64_t({})", lists.kernel[i]));
    places.push_back(call.w.let("int64_t",
      fmt::format(
        "{} * int64_t({}) + {} - int64_t({})", own[i], lists.stride[i], tap, lists.padding[i])));
    inside +=
      fmt::format("{0}{1} >= 0 && {1} < {2}", i == 0 ? "" : " && ", places.back(), sizes[i]);
  }
  call.w.open(fmt::format("if ({})", inside));
  call.w.line(
    fmt::format("{} += {};", total, call.read(input, joined(index, spatial, places), "double")));
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return naive_converted(
    fmt::format("({} / {})", total, divisor(call, 4, lists, own, sizes)), "double", call.type());
}

std::string avg_pool_backward(const naive_call& call, const naive_index& index) {
  const int64_t grad = call.tensor(0);
  const size_t spatial = spatial_of(call);
  const auto lists = lists_of(call, 2, false);
  const size_t first = index.size() - spatial;
  const auto sizes = spatial_sizes(call, call.node.outputs[0], spatial);
  const std::string total = call.w.variable("double", "0.0");
  naive_index places;
  std::string inside;
  for (size_t i = 0; i < spatial; ++i) {
    const auto [place, more] =
      open_reader(call, lists, i, index[first + i], call.w.size(grad, first + i));
    places.push_back(place);
    inside += (i == 0 ? "" : " && ") + more;
  }
  call.w.open(fmt::format("if ({})", inside));
  const std::string by = divisor(call, 5, lists, places, sizes);
  call.w.line(fmt::format(
    "{} += {} / {};", total, call.read(grad, joined(index, spatial, places), "double"), by));
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return naive_converted(total, "double", call.type());
}

/// Opens loops over the windows that divide the input evenly among the outputs; returns the input's
/// places and the number of elements of the window.
std::pair<naive_index, std::string> open_adaptive(
  const naive_call& call, const naive_index& own, size_t spatial) {
  const auto in = spatial_sizes(call, call.tensor(0), spatial);
  const auto out = spatial_sizes(call, call.node.outputs[0], spatial);
  std::vector<std::string> begins;
  std::vector<std::string> counts;
  std::string count = "int64_t(1)";
  for (size_t i = 0; i < spatial; ++i) {
    begins.push_back(call.w.let("int64_t", fmt::format("{} * {} / {}", own[i], in[i], out[i])));
    counts.push_back(call.w.let("int64_t",
      fmt::format("(({0} + 1) * {1} + {2} - 1) / {2} - {3}", own[i], in[i], out[i], begins[i])));
    count += " * " + counts.back();
  }
  const std::string total = call.w.let("int64_t", count);
  naive_index places;
  for (size_t i = 0; i < spatial; ++i)
    places.push_back(fmt::format("({} + {})", begins[i], call.w.loop(counts[i])));
  return {places, total};
}

std::string adaptive_avg_pool(const naive_call& call, const naive_index& index) {
  const size_t spatial = spatial_of(call);
  const naive_index own(index.end() - static_cast<std::ptrdiff_t>(spatial), index.end());
  const std::string total = call.w.variable("double", "0.0");
  const auto [places, count] = open_adaptive(call, own, spatial);
  call.w.line(fmt::format(
    "{} += {};", total, call.read(call.tensor(0), joined(index, spatial, places), "double")));
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return naive_converted(fmt::format("({} / double({}))", total, count), "double", call.type());
}

std::string adaptive_max_pool(const naive_call& call, const naive_index& index) {
  const int64_t input = call.tensor(0);
  const size_t spatial = spatial_of(call);
  const naive_index own(index.end() - static_cast<std::ptrdiff_t>(spatial), index.end());
  const std::string type = call.w.type_of(input);
  const std::string best = call.w.variable(type, naive_lowest(type));
  const std::string place = call.w.variable("int64_t", "int64_t(-1)");
  const auto [places, count] = open_adaptive(call, own, spatial);
  const std::string x = call.w.let(type, call.read(input, joined(index, spatial, places), type));
  call.w.open(fmt::format("if ({0} < 0 || {1} > {2} || {1} != {1})", place, x, best));
  call.w.line(fmt::format("{} = {};", best, x));
  call.w.line(fmt::format("{} = {};", place, place_in_plane(call, input, places)));
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  return call.output == 1 ? place : best;
}

/// How many input elements one output element is, along spatial dimension `i`: from the scale that
/// the call names, else from the sizes. `place` is the first argument that may name a scale.
std::string resize_step(const naive_call& call, size_t place, size_t i, size_t spatial) {
  const graph_operand* scale = call.find(place);
  double factor = 0;
  if (scale != nullptr && scale->kind == operand_kind::numbers && i < scale->numbers.size())
    factor = scale->numbers[i];
  else if (scale != nullptr && scale->kind == operand_kind::integers && i < scale->list.size())
    factor = static_cast<double>(scale->list[i]);
  else if (const graph_operand* own = call.find(place + i);
           own != nullptr && own->kind == operand_kind::number && !own->varies)
    factor = own->number;
  if (factor > 0)
    return naive_literal(1.0 / factor, "float");
  return call.w.let("float",
    fmt::format("float({}) / float({})", spatial_sizes(call, call.tensor(0), spatial)[i],
      spatial_sizes(call, call.node.outputs[0], spatial)[i]));
}

std::string upsample_nearest(const naive_call& call, const naive_index& index) {
  const size_t spatial = spatial_of(call);
  const bool is_exact = call.op().find("exact") != std::string::npos;
  const int64_t input = call.tensor(0);
  const auto in = spatial_sizes(call, input, spatial);
  const size_t first = index.size() - spatial;
  naive_index places;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string step = resize_step(call, 2, i, spatial);
    const std::string at = call.w.let("int64_t",
      fmt::format("int64_t(floor((float({}) + {}) * {}))", index[first + i],
        is_exact ? "0.5f" : "0.0f", step));
    places.push_back(
      call.w.let("int64_t", fmt::format("{0} < {1} - 1 ? {0} : {1} - 1", at, in[i])));
  }
  return call.read(input, joined(index, spatial, places), call.type());
}

std::string upsample_linear(const naive_call& call, const naive_index& index) {
  const size_t spatial = call.op().starts_with("upsample_tri") ? 3
    : call.op().starts_with("upsample_bi")                     ? 2
                                                               : 1;
  if (call.rank(call.tensor(0)) < spatial || index.size() < spatial)
    call.refuse("works on a tensor with too few dimensions");
  const bool aligns = call.flag(2, "align_corners", false);
  const int64_t input = call.tensor(0);
  const auto in = spatial_sizes(call, input, spatial);
  const auto out = spatial_sizes(call, call.node.outputs[0], spatial);
  const size_t first = index.size() - spatial;
  std::vector<std::string> low;
  std::vector<std::string> high;
  std::vector<std::string> weight;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string& own = index[first + i];
    const std::string at = aligns
      ? call.w.let("float",
        fmt::format(
          "{0} > 1 ? float({1} - 1) / float({0} - 1) * float({2}) : 0.0f", out[i], in[i], own))
      : call.w.let("float",
        fmt::format(
          "fmaxf({} * (float({}) + 0.5f) - 0.5f, 0.0f)", resize_step(call, 3, i, spatial), own));
    low.push_back(call.w.let(
      "int64_t", fmt::format("int64_t({0}) < {1} - 1 ? int64_t({0}) : {1} - 1", at, in[i])));
    high.push_back(
      call.w.let("int64_t", fmt::format("{0} < {1} - 1 ? {0} + 1 : {0}", low[i], in[i])));
    weight.push_back(call.w.let("float", fmt::format("fminf({} - float({}), 1.0f)", at, low[i])));
  }
  const std::string type = call.type();
  const std::string total = call.w.variable(type, naive_literal(0, type));
  for (size_t corner = 0; corner < (size_t{1} << spatial); ++corner) {
    naive_index places;
    std::string share;
    for (size_t i = 0; i < spatial; ++i) {
      const bool is_high = (corner >> i & 1) != 0;
      places.push_back(is_high ? high[i] : low[i]);
      share += fmt::format(
        "{}{}", share.empty() ? "" : " * ", is_high ? weight[i] : "(1.0f - " + weight[i] + ")");
    }
    call.w.line(fmt::format("{} += {}({}) * {};", total, type, share,
      call.read(input, joined(index, spatial, places), type)));
  }
  return total;
}

/// Windows laid out as columns: [N, C * taps, places].
std::string im2col(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t input = call.tensor(0);
  const auto kernel = call.integers_for(1, "kernel_size", 2, 1);
  const auto dilation = call.integers_for(2, "dilation", 2, 1);
  const auto padding = call.integers_for(3, "padding", 2, 0);
  const auto stride = call.integers_for(4, "stride", 2, 1);
  if (call.rank(input) != 4 || index.size() != 3)
    call.refuse("without a batch has no naive kernel");
  for (size_t i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || stride[i] < 1)
      call.refuse("has a window or a stride below 1");
  }
  const int64_t taps = kernel[0] * kernel[1];
  const std::string columns = call.w.let("int64_t",
    fmt::format("({} + int64_t({})) / int64_t({}) + 1", call.w.size(input, 3),
      2 * padding[1] - dilation[1] * (kernel[1] - 1) - 1, stride[1]));
  const std::string row = call.w.let("int64_t",
    fmt::format("{} / {} * int64_t({}) + {} / int64_t({}) % int64_t({}) * int64_t({}) - "
                "int64_t({})",
      index[2], columns, stride[0], index[1], kernel[1], kernel[0], dilation[0], padding[0]));
  const std::string column = call.w.let("int64_t",
    fmt::format("{} % {} * int64_t({}) + {} % int64_t({}) * int64_t({}) - int64_t({})", index[2],
      columns, stride[1], index[1], kernel[1], dilation[1], padding[1]));
  const std::string out = call.w.variable(type, naive_literal(0, type));
  call.w.open(fmt::format("if ({0} >= 0 && {0} < {1} && {2} >= 0 && {2} < {3})", row,
    call.w.size(input, 2), column, call.w.size(input, 3)));
  call.w.line(fmt::format("{} = {};", out,
    call.read(
      input, {index[0], fmt::format("({} / int64_t({}))", index[1], taps), row, column}, type)));
  call.w.close();
  return out;
}

} // namespace

void add_naive_windows(naive_operator_table& table) {
  for (const char* op : {"max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d",
         "max_pool3d", "max_pool1d"})
    table[op] = {max_pool};
  for (const char* op : {"max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"})
    table[op] = {max_pool_backward};
  for (const char* op : {"avg_pool1d", "avg_pool2d", "avg_pool3d"})
    table[op] = {avg_pool};
  for (const char* op : {"avg_pool2d_backward", "avg_pool3d_backward"})
    table[op] = {avg_pool_backward};
  for (const char* op : {"adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"})
    table[op] = {adaptive_avg_pool};
  for (const char* op : {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"})
    table[op] = {adaptive_max_pool};
  for (const char* op : {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
         "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"})
    table[op] = {upsample_nearest};
  for (const char* op : {"upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"})
    table[op] = {upsample_linear};
  table["im2col"] = {im2col};
}

} // namespace gristmill
