#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

using pointers = std::vector<std::string>;

bool is_floating(const std::string& type) {
  return type == "float" || type == "double";
}

/// Stores an element of one of the results, where somebody wants it.
void store(const naive_call& call, const pointers& outputs, size_t which, const naive_index& index,
  const std::string& text, const std::string& from_type) {
  if (which >= outputs.size() || outputs[which].empty())
    return;
  const int64_t id = call.node.outputs[which];
  const auto type = parse_dtype(call.value(id).dtype);
  if (!type)
    call.refuse(fmt::format("gives elements of type {}", call.value(id).dtype));
  call.w.line(fmt::format("{}[{}] = {};", outputs[which], call.w.linear(call.w.shape(id), index),
    naive_stored(naive_converted(text, from_type, call.w.type_of(id)), *type)));
}

size_t rank_of_input(const naive_call& call) {
  return call.rank(call.tensor(0));
}

size_t scan_dim(const naive_call& call) {
  return call.dimension(call.integer(1, "dim", -1), rank_of_input(call));
}

size_t topk_dim(const naive_call& call) {
  return call.dimension(call.integer(2, "dim", -1), rank_of_input(call));
}

/// Opens the walk along the dimension; a tensor without any has one element.
std::pair<naive_index, std::string> walk(
  const naive_call& call, const naive_index& index, size_t dim) {
  if (index.empty())
    return {{}, call.w.loop("int64_t(1)")};
  const std::string k = call.w.loop(call.w.size(call.tensor(0), dim));
  return {replaced(index, dim, k), k};
}

void cumulative(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const std::string type = call.w.type_of(call.node.outputs[0]);
  const std::string inner = is_floating(type) ? "double" : "int64_t";
  const bool is_sum = call.op() == "cumsum";
  const std::string total = call.w.variable(inner, fmt::format("{}({})", inner, is_sum ? 0 : 1));
  const auto [at, k] = walk(call, index, scan_dim(call));
  call.w.line(
    fmt::format("{} {} {};", total, is_sum ? "+=" : "*=", call.read(call.tensor(0), at, inner)));
  store(call, outputs, 0, at, total, inner);
  call.w.close();
}

void log_cumulative(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const std::string total = call.w.variable("double", "double(-INFINITY)");
  const auto [at, k] = walk(call, index, scan_dim(call));
  const std::string x = call.w.let("double", call.read(call.tensor(0), at, "double"));
  const std::string top = call.w.let("double", fmt::format("fmax({}, {})", total, x));
  call.w.line(
    fmt::format("{0} = {1} - {1} == {1} - {1} ? {1} + log(exp({0} - {1}) + exp({2} - {1})) : {1};",
      total, top, x));
  store(call, outputs, 0, at, total, "double");
  call.w.close();
}

/// The extreme so far and where it stands; the last of equals, as torch has it.
void cumulative_extreme(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const std::string type = call.w.type_of(call.node.outputs[0]);
  const bool is_max = call.op() == "cummax";
  const std::string best = call.w.variable(type, is_max ? naive_lowest(type) : naive_highest(type));
  const std::string place = call.w.variable("int64_t", "int64_t(0)");
  const auto [at, k] = walk(call, index, scan_dim(call));
  const std::string x = call.w.let(type, call.read(call.tensor(0), at, type));
  call.w.open(
    fmt::format("if ({0} != {0} || ({1} == {1} && {0} {2}= {1}))", x, best, is_max ? ">" : "<"));
  call.w.line(fmt::format("{} = {};", best, x));
  call.w.line(fmt::format("{} = {};", place, k));
  call.w.close();
  store(call, outputs, 0, at, best, type);
  store(call, outputs, 1, at, place, "int64_t");
  call.w.close();
}

/// How many elements of the row come before this one: its place in the sorted row.
std::string rank_in_row(
  const naive_call& call, const naive_index& index, size_t dim, bool descends) {
  const int64_t from = call.tensor(0);
  const std::string type = call.w.type_of(from);
  const std::string x = call.w.let(type, call.read(from, index, type));
  const std::string rank = call.w.variable("int64_t", "int64_t(0)");
  if (index.empty())
    return rank;
  const std::string k = call.w.loop(call.w.size(from, dim));
  const std::string y = call.w.let(type, call.read(from, replaced(index, dim, k), type));
  // NaN is greater than everything; equals keep their order.
  const auto greater = [](const std::string& a, const std::string& b) {
    return fmt::format("({0} > {1} || ({0} != {0} && {1} == {1}))", a, b);
  };
  const std::string before = descends ? greater(y, x) : greater(x, y);
  const std::string after = descends ? greater(x, y) : greater(y, x);
  call.w.line(fmt::format("if ({} || (!{} && {} < {}))", before, after, k, index.at(dim)));
  call.w.line(fmt::format("  ++{};", rank));
  call.w.close();
  return rank;
}

void store_ranked(const naive_call& call, const naive_index& index, const naive_index& to,
  size_t dim, const pointers& outputs) {
  const std::string type = call.w.type_of(call.tensor(0));
  store(call, outputs, 0, to, call.read(call.tensor(0), index, type), type);
  store(call, outputs, 1, to, index.empty() ? "int64_t(0)" : index.at(dim), "int64_t");
}

void sort(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const size_t dim = scan_dim(call);
  const std::string rank = rank_in_row(call, index, dim, call.flag(2, "descending", false));
  if (call.op() == "argsort") {
    store(call, outputs, 0, replaced(index, dim, rank), index.at(dim), "int64_t");
    return;
  }
  store_ranked(call, index, index.empty() ? index : replaced(index, dim, rank), dim, outputs);
}

void topk(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const size_t dim = topk_dim(call);
  const std::string rank = rank_in_row(call, index, dim, call.flag(3, "largest", true));
  const std::string k = index.empty() ? "int64_t(1)" : call.w.size(call.node.outputs[0], dim);
  call.w.open(fmt::format("if ({} < {})", rank, k));
  store_ranked(call, index, index.empty() ? index : replaced(index, dim, rank), dim, outputs);
  call.w.close();
}

void kthvalue(const naive_call& call, const naive_index& index, const pointers& outputs) {
  const size_t dim = topk_dim(call);
  const std::string rank = rank_in_row(call, index, dim, false);
  call.w.open(fmt::format("if ({} == {} - 1)", rank, call.w.amount(call.amount(1, "k", 1))));
  naive_index to = index;
  if (!index.empty())
    to = call.flag(3, "keepdim", false) ? replaced(index, dim, "int64_t(0)") : without(index, dim);
  store_ranked(call, index, to, dim, outputs);
  call.w.close();
}

} // namespace

void add_naive_scans(naive_scan_table& table) {
  for (const char* op : {"cumsum", "cumprod"})
    table[op] = {scan_dim, false, cumulative};
  table["logcumsumexp"] = {scan_dim, false, log_cumulative};
  for (const char* op : {"cummax", "cummin"})
    table[op] = {scan_dim, false, cumulative_extreme};
  for (const char* op : {"sort", "argsort"})
    table[op] = {scan_dim, true, sort};
  table["topk"] = {topk_dim, true, topk};
  table["kthvalue"] = {topk_dim, true, kthvalue};
}

} // namespace gristmill
