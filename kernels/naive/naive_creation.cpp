#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

std::string zero(const naive_call& call, const naive_index&) {
  return naive_literal(0, call.type());
}

std::string one(const naive_call& call, const naive_index&) {
  return naive_literal(1, call.type());
}

/// A number, or a tensor with one element, in every place.
std::string filled(const naive_call& call, const naive_index&) {
  const std::string op = call.op();
  const size_t place = op == "new_full" ? 2 : op == "scalar_tensor" ? 0 : 1;
  return call.number(place,
    op == "fill"              ? "value"
      : op == "scalar_tensor" ? "s"
                              : "fill_value",
    call.type(), 0);
}

std::string arange(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const size_t count = call.node.inputs.size();
  if (count == 0)
    call.refuse("has no end");
  const std::string inner = naive_is_float(call.result().dtype) ? "double" : "int64_t";
  const std::string start = count == 1 ? naive_literal(0, inner) : call.number(0, "", inner, 0);
  const std::string step = count > 2 ? call.number(2, "step", inner, 1) : naive_literal(1, inner);
  return naive_converted(
    fmt::format("({} + {} * {}({}))", start, step, inner, index.at(0)), inner, type);
}

std::string linspace(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string inner = "double";
  const std::string start = call.w.let(inner, call.number(0, "start", inner, 0));
  const std::string end = call.w.let(inner, call.number(1, "end", inner, 0));
  const std::string count = call.w.size(call.node.outputs[0], 0);
  // From either end to the middle, so that both ends are exact.
  const std::string step = call.w.let(
    inner, fmt::format("{0} > 1 ? ({1} - {2}) / double({0} - 1) : 0.0", count, end, start));
  return naive_converted(
    fmt::format("({0} < {1} / 2 ? {2} + {3} * double({0}) : {1} == 1 ? {2} : {4} - {3} * "
                "double({1} - 1 - {0}))",
      index.at(0), count, start, step, end),
    inner, type);
}

std::string eye(const naive_call& call, const naive_index& index) {
  return naive_converted(fmt::format("({} == {})", index.at(0), index.at(1)), "bool", call.type());
}

/// Keeps what lies on one side of a diagonal.
std::string triangle(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string diagonal = call.w.amount(call.amount(1, "diagonal", 0));
  const std::string& row = index.at(index.size() - 2);
  const std::string& column = index.at(index.size() - 1);
  const std::string out = call.w.variable(type, naive_literal(0, type));
  call.w.open(
    fmt::format("if ({} - {} {} {})", column, row, call.op() == "tril" ? "<=" : ">=", diagonal));
  call.w.line(fmt::format("{} = {};", out, call.argument(0, "self", index, type)));
  call.w.close();
  return out;
}

} // namespace

void add_naive_creation(naive_operator_table& table) {
  for (const char* op : {"zeros", "zeros_like", "new_zeros", "zero"})
    table[op] = {zero};
  for (const char* op : {"ones", "ones_like", "new_ones"})
    table[op] = {one};
  // What nobody has written may be anything, so it is zero.
  for (const char* op : {"empty", "empty_like", "new_empty", "empty_strided"})
    table[op] = {zero};
  for (const char* op : {"full", "full_like", "new_full", "scalar_tensor", "fill"})
    table[op] = {filled};
  table["arange"] = {arange};
  table["linspace"] = {linspace};
  table["eye"] = {eye};
  for (const char* op : {"tril", "triu"})
    table[op] = {triangle};
}

} // namespace gristmill
