#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>
#include <functional>

namespace gristmill {

namespace {

/// A float sum of many terms is made of sums of this many: the error then grows with the number of
/// parts, not of terms.
constexpr int part_terms = 64;

using term = std::function<std::string(const std::string& k)>;

/// What products are summed in.
std::string sum_type(const naive_call& call) {
  const std::string type = call.type();
  return type == "float" || type == "double" ? type : "int64_t";
}

/// The sum of `body(k)` for k below a size.
std::string summed(
  const naive_call& call, const std::string& type, const std::string& size, const term& body) {
  const std::string total = call.w.variable(type, type + "(0)");
  if (type != "float") {
    const std::string k = call.w.loop(size);
    call.w.line(fmt::format("{} += {};", total, body(k)));
    call.w.close();
    return total;
  }
  const std::string first = call.w.fresh("k");
  call.w.open(fmt::format("for (int64_t {0} = 0; {0} < {1}; {0} += {2})", first, size, part_terms));
  const std::string part = call.w.variable(type, "0.0f");
  const std::string end = call.w.let(
    "int64_t", fmt::format("{0} + {2} < {1} ? {0} + {2} : {1}", first, size, part_terms));
  const std::string k = call.w.fresh("k");
  call.w.open(fmt::format("for (int64_t {0} = {1}; {0} < {2}; ++{0})", k, first, end));
  call.w.line(fmt::format("{} += {};", part, body(k)));
  call.w.close();
  call.w.line(fmt::format("{} += {};", total, part));
  call.w.close();
  return total;
}

/// The product of two matrices at a row and a column, with leading indices.
std::string product_at(const naive_call& call, int64_t a, int64_t b, const naive_index& leading,
  const std::string& row, const std::string& column) {
  const std::string type = sum_type(call);
  const std::string size = call.w.size(a, leading.size() + 1);
  return summed(call, type, size, [&](const std::string& k) {
    naive_index left = leading;
    left.push_back(row);
    left.push_back(k);
    naive_index right = leading;
    right.push_back(k);
    right.push_back(column);
    return fmt::format("{} * {}", call.read(a, left, type), call.read(b, right, type));
  });
}

/// beta * self + alpha * product.
std::string added(const naive_call& call, const naive_index& index, const std::string& product) {
  const std::string type = sum_type(call);
  std::string text = fmt::format("{} * {}", call.number(4, "alpha", type, 1), product);
  const graph_operand* beta = call.find(3, "beta");
  const bool is_zero = beta != nullptr && !beta->varies
    && ((beta->kind == operand_kind::integer && beta->integer == 0)
      || (beta->kind == operand_kind::number && beta->number == 0));
  // With beta 0 torch does not look at `self`, which may be NaN.
  if (!is_zero)
    text = fmt::format(
      "{} * {} + {}", call.number(3, "beta", type, 1), call.argument(0, "self", index, type), text);
  return naive_converted(fmt::format("({})", text), type, call.type());
}

std::string mm(const naive_call& call, const naive_index& index) {
  return naive_converted(
    product_at(call, call.tensor(0), call.tensor(1), {}, index.at(0), index.at(1)), sum_type(call),
    call.type());
}

std::string bmm(const naive_call& call, const naive_index& index) {
  return naive_converted(
    product_at(call, call.tensor(0), call.tensor(1), {index.at(0)}, index.at(1), index.at(2)),
    sum_type(call), call.type());
}

std::string addmm(const naive_call& call, const naive_index& index) {
  return added(
    call, index, product_at(call, call.tensor(1), call.tensor(2), {}, index.at(0), index.at(1)));
}

std::string baddbmm(const naive_call& call, const naive_index& index) {
  return added(call, index,
    product_at(call, call.tensor(1), call.tensor(2), {index.at(0)}, index.at(1), index.at(2)));
}

std::string addbmm(const naive_call& call, const naive_index& index) {
  const std::string type = sum_type(call);
  const std::string total = call.w.variable(type, type + "(0)");
  const std::string batch = call.w.loop(call.w.size(call.tensor(1), 0));
  call.w.line(fmt::format("{} += {};", total,
    product_at(call, call.tensor(1), call.tensor(2), {batch}, index.at(0), index.at(1))));
  call.w.close();
  return added(call, index, total);
}

std::string vector_at(const naive_call& call, int64_t a, int64_t b, const naive_index& row) {
  const std::string type = sum_type(call);
  return summed(call, type, call.w.size(b, 0), [&](const std::string& k) {
    naive_index left = row;
    left.push_back(k);
    return fmt::format("{} * {}", call.read(a, left, type), call.read(b, {k}, type));
  });
}

std::string mv(const naive_call& call, const naive_index& index) {
  return naive_converted(
    vector_at(call, call.tensor(0), call.tensor(1), index), sum_type(call), call.type());
}

std::string addmv(const naive_call& call, const naive_index& index) {
  return added(call, index, vector_at(call, call.tensor(1), call.tensor(2), index));
}

std::string addr(const naive_call& call, const naive_index& index) {
  const std::string type = sum_type(call);
  return added(call, index,
    fmt::format("{} * {}", call.read(call.tensor(1), {index.at(0)}, type),
      call.read(call.tensor(2), {index.at(1)}, type)));
}

/// Lists of a convolution, one number for each spatial dimension.
struct convolution_lists {
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;
};

/// Opens a loop for each spatial dimension of the weight; returns the taps.
naive_index open_taps(const naive_call& call, int64_t weight, size_t spatial) {
  naive_index taps;
  for (size_t i = 0; i < spatial; ++i)
    taps.push_back(call.w.loop(call.w.size(weight, 2 + i)));
  return taps;
}

/// Where each tap reads the input, and the condition that this is inside.
std::pair<naive_index, std::string> tap_places(const naive_call& call,
  const convolution_lists& lists, const naive_index& index, const naive_index& taps,
  bool is_transposed) {
  naive_index places;
  std::string inside;
  for (size_t i = 0; i < taps.size(); ++i) {
    const std::string size = call.w.size(call.tensor(0), 2 + i);
    std::string more;
    if (is_transposed) {
      const std::string past = call.w.let("int64_t",
        fmt::format("{} + int64_t({}) - {} * int64_t({})", index[2 + i], lists.padding[i], taps[i],
          lists.dilation[i]));
      places.push_back(
        call.w.let("int64_t", fmt::format("{} / int64_t({})", past, lists.stride[i])));
      more = fmt::format("{0} >= 0 && {0} % int64_t({1}) == 0 && {2} < {3}", past, lists.stride[i],
        places.back(), size);
    } else {
      places.push_back(call.w.let("int64_t",
        fmt::format("{} * int64_t({}) + {} * int64_t({}) - int64_t({})", index[2 + i],
          lists.stride[i], taps[i], lists.dilation[i], lists.padding[i])));
      more = fmt::format("{0} >= 0 && {0} < {1}", places.back(), size);
    }
    inside += (inside.empty() ? "" : " && ") + more;
  }
  return {places, inside.empty() ? "true" : inside};
}

std::string convolution(const naive_call& call, const naive_index& index) {
  const int64_t input = call.tensor(0);
  const int64_t weight = call.tensor(1);
  if (call.rank(input) < 3 || call.rank(weight) != call.rank(input)
    || index.size() != call.rank(input))
    call.refuse("without a batch has no naive kernel");
  const size_t spatial = call.rank(input) - 2;
  const convolution_lists lists{call.integers_for(3, "stride", spatial, 1),
    call.integers_for(4, "padding", spatial, 0), call.integers_for(5, "dilation", spatial, 1)};
  const bool is_transposed = call.flag(6, "transposed", false);
  const naive_size group_count = call.amount(8, "groups", 1);
  const std::string groups = call.w.amount(group_count);
  for (size_t i = 0; i < spatial; ++i) {
    if (lists.stride[i] < 1 || lists.dilation[i] < 1 || group_count.traced < 1)
      call.refuse("has a stride, dilation or number of groups below 1");
  }
  const std::string type = sum_type(call);
  // Channels of the input and of the output that belong to one group.
  const std::string in_channels = is_transposed
    ? call.w.let("int64_t", fmt::format("{} / {}", call.w.size(input, 1), groups))
    : call.w.size(weight, 1);
  const std::string out_channels = is_transposed
    ? call.w.size(weight, 1)
    : call.w.let("int64_t", fmt::format("{} / {}", call.w.size(weight, 0), groups));
  const std::string group = call.w.let("int64_t", fmt::format("{} / {}", index[1], out_channels));
  const std::string total = call.w.variable(type, type + "(0)");
  const std::string c = call.w.loop(in_channels);
  const std::string channel =
    call.w.let("int64_t", fmt::format("{} * {} + {}", group, in_channels, c));
  const std::string part = call.w.variable(type, type + "(0)");
  const naive_index taps = open_taps(call, weight, spatial);
  const auto [places, inside] = tap_places(call, lists, index, taps, is_transposed);
  call.w.open(fmt::format("if ({})", inside));
  naive_index from{index[0], channel};
  from.insert(from.end(), places.begin(), places.end());
  naive_index tap = is_transposed
    ? naive_index{channel, fmt::format("({} % {})", index[1], out_channels)}
    : naive_index{index[1], c};
  tap.insert(tap.end(), taps.begin(), taps.end());
  call.w.line(fmt::format(
    "{} += {} * {};", part, call.read(input, from, type), call.read(weight, tap, type)));
  call.w.close();
  for (size_t i = 0; i < spatial; ++i)
    call.w.close();
  call.w.line(fmt::format("{} += {};", total, part));
  call.w.close();
  const std::string value = call.has(2, "bias")
    ? fmt::format("({} + {})", total, call.read(call.tensor(2, "bias"), {index[1]}, type))
    : total;
  return naive_converted(value, type, call.type());
}

} // namespace

void add_naive_products(naive_operator_table& table) {
  table["mm"] = {mm};
  table["bmm"] = {bmm};
  table["addmm"] = {addmm};
  table["baddbmm"] = {baddbmm};
  table["addbmm"] = {addbmm};
  table["mv"] = {mv};
  table["addmv"] = {addmv};
  table["addr"] = {addr};
  for (const char* op : {"dot", "vdot"})
    table[op] = {mv};
  table["convolution"] = {convolution};
}

} // namespace gristmill
