#include "kernels/naive/naive_fold.hpp"
#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

bool is_floating(const std::string& type) {
  return type == "float" || type == "double";
}

/// Where the dimensions of a reduction stand among the arguments, by operator.
struct reduction_arguments {
  size_t dim = 1;
  size_t keepdim = 2;
};

reduction_arguments arguments_of(const std::string& op) {
  if (op == "norm" || op == "linalg_vector_norm" || op == "var" || op == "std" || op == "var_mean"
    || op == "std_mean")
    return {op == "norm" || op == "linalg_vector_norm" ? size_t{2} : size_t{1}, 3};
  return {};
}

/// The whole of the tensor, or the named dimensions.
naive_fold fold_of(const naive_call& call, const naive_index& index) {
  const auto [dim, keepdim] = arguments_of(call.op());
  const int64_t from = call.tensor(0);
  std::vector<size_t> dims;
  const graph_operand* named = call.find(dim, "dim");
  // In `var(x, unbiased)` the truth value stands where the dimensions would.
  if (named != nullptr && named->kind != operand_kind::boolean)
    dims = call.dimensions(call.integers(dim, "dim"), call.rank(from));
  if (call.rank(from) == 0)
    dims.clear();
  return {call, from, dims, index};
}

std::string sum(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const std::string type = call.type();
  const bool is_float = is_floating(type);
  const std::string inner = is_float ? "double" : "int64_t";
  const std::string op = call.op();
  const std::string total = fold.sum(inner, [&](const naive_index& at) {
    if (op == "nansum") {
      const std::string x = call.w.let(inner, call.read(fold.from(), at, inner));
      return fmt::format("({0} != {0} ? {1}(0) : {0})", x, inner);
    }
    return call.read(fold.from(), at, inner);
  });
  if (op != "mean")
    return naive_converted(total, inner, type);
  return naive_converted(fmt::format("{} / {}({})", total, inner, fold.count()), inner, type);
}

std::string product(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const std::string type = call.type();
  const std::string inner = is_floating(type) ? "double" : "int64_t";
  const std::string total = fold.combined(
    inner, inner + "(1)", [&](const naive_index& at) { return call.read(fold.from(), at, inner); },
    "{0} * {1}");
  return naive_converted(total, inner, type);
}

std::string truth(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const bool is_any = call.op() == "any";
  // As integers, because a warp exchanges those.
  const std::string total = fold.combined(
    "int32_t", is_any ? "int32_t(0)" : "int32_t(1)",
    [&](const naive_index& at) { return call.read(fold.from(), at, "bool") + " ? 1 : 0"; },
    is_any ? "{0} | {1}" : "{0} & {1}");
  return naive_converted(total, "int32_t", call.type());
}

std::string count_nonzero(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  return fold.sum("int64_t", [&](const naive_index& at) {
    return fmt::format("int64_t({})", call.read(fold.from(), at, "bool"));
  });
}

/// Values and places of the largest or the smallest element; the first of equals; NaN wins.
std::string extreme(const naive_call& call, const naive_index& index) {
  const std::string op = call.op();
  if ((op == "max" || op == "min") && call.is_tensor(1))
    return formula_extreme(call, index);
  naive_fold fold = fold_of(call, index);
  const std::string inner = call.w.type_of(fold.from());
  const bool is_max =
    op == "max" || op == "amax" || op == "argmax" || (op == "aminmax" && call.output == 1);
  const bool wants_place =
    op == "argmax" || op == "argmin" || (call.output == 1 && (op == "max" || op == "min"));
  const auto [value, place] = fold.extreme(
    inner, is_max, [&](const naive_index& at) { return call.read(fold.from(), at, inner); });
  return naive_converted(wants_place ? place : value, wants_place ? "int64_t" : inner, call.type());
}

std::string variance(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const std::string op = call.op();
  const std::string type = call.type();
  const auto element = [&](const naive_index& at) { return call.read(fold.from(), at, "double"); };
  const std::string mean =
    call.w.let("double", fmt::format("{} / double({})", fold.sum("double", element), fold.count()));
  if (call.output == 1)
    return naive_converted(mean, "double", type);
  // The correction is a number by name, or an older form's truth value in its place.
  std::string correction = "1.0";
  if (find_attr(call.node, "correction") != nullptr) {
    const graph_operand& named = *find_attr(call.node, "correction");
    if (named.kind != operand_kind::none)
      correction = call.w.number(call.node, named, "double");
  } else if (const graph_operand* unbiased = find_attr(call.node, "unbiased");
             unbiased != nullptr && unbiased->kind == operand_kind::boolean) {
    correction = unbiased->integer != 0 ? "1.0" : "0.0";
  } else {
    for (size_t place : {size_t{1}, size_t{2}}) {
      const graph_operand* flag = call.find(place);
      if (flag != nullptr && flag->kind == operand_kind::boolean) {
        correction = flag->integer != 0 ? "1.0" : "0.0";
        break;
      }
    }
  }
  const std::string squares = fold.sum("double", [&](const naive_index& at) {
    const std::string off = call.w.let("double", fmt::format("{} - {}", element(at), mean));
    return fmt::format("{0} * {0}", off);
  });
  const std::string rest =
    call.w.let("double", fmt::format("double({}) - {}", fold.count(), correction));
  const std::string value = fmt::format("{0} / ({1} > 0.0 ? {1} : 0.0)", squares, rest);
  return naive_converted(
    op.starts_with("std") ? fmt::format("sqrt({})", value) : value, "double", type);
}

std::string logsumexp(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const auto element = [&](const naive_index& at) { return call.read(fold.from(), at, "float"); };
  const std::string type = call.type();
  const bool is_double = type == "double";
  const std::string inner = is_double ? "double" : "float";
  const std::string top =
    fold
      .extreme(
        inner, true, [&](const naive_index& at) { return call.read(fold.from(), at, inner); })
      .first;
  const std::string finite =
    call.w.let(inner, fmt::format("{0} - {0} == {0} - {0} ? {0} : {1}(0)", top, inner));
  const std::string total = fold.sum("double", [&](const naive_index& at) {
    return fmt::format("double(exp({} - {}))",
      is_double ? call.read(fold.from(), at, "double") : element(at), finite);
  });
  return naive_converted(fmt::format("log({}) + double({})", total, finite), "double", type);
}

std::string norm(const naive_call& call, const naive_index& index) {
  naive_fold fold = fold_of(call, index);
  const std::string type = call.type();
  const graph_operand* order = call.find(1, call.op() == "norm" ? "p" : "ord");
  double p = 2;
  if (order != nullptr) {
    if ((order->kind != operand_kind::number && order->kind != operand_kind::integer)
      || order->varies)
      call.refuse("has an order that is no constant number");
    p = order->kind == operand_kind::number ? order->number : static_cast<double>(order->integer);
  }
  const auto size_at = [&](const naive_index& at) {
    return fmt::format("fabs({})", call.read(fold.from(), at, "double"));
  };
  if (p > 1e300 || p < -1e300)
    return naive_converted(fold.extreme("double", p > 0, size_at).first, "double", type);
  const std::string total = fold.sum("double", [&](const naive_index& at) {
    if (p == 2) {
      const std::string x = call.w.let("double", call.read(fold.from(), at, "double"));
      return fmt::format("{0} * {0}", x);
    }
    if (p == 1)
      return size_at(at);
    if (p == 0)
      return fmt::format("double({})", call.read(fold.from(), at, "bool"));
    return fmt::format("pow({}, {})", size_at(at), naive_literal(p, "double"));
  });
  const std::string value = p == 2 ? fmt::format("sqrt({})", total)
    : p == 1 || p == 0             ? total
                       : fmt::format("pow({}, {})", total, naive_literal(1 / p, "double"));
  return naive_converted(value, "double", type);
}

std::string trace(const naive_call& call, const naive_index&) {
  const std::string type = call.type();
  const std::string inner = is_floating(type) ? "double" : "int64_t";
  const int64_t from = call.tensor(0);
  const std::string total = call.w.variable(inner, inner + "(0)");
  const std::string k =
    call.w.loop(fmt::format("({0} < {1} ? {0} : {1})", call.w.size(from, 0), call.w.size(from, 1)));
  call.w.line(fmt::format("{} += {};", total, call.read(from, {k, k}, inner)));
  call.w.close();
  return naive_converted(total, inner, type);
}

} // namespace

std::string formula_extreme(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const std::string a = call.w.let(type, call.argument(0, "self", index, type));
  const std::string b = call.w.let(type, call.argument(1, "other", index, type));
  return fmt::format("({0} != {0} ? {0} : {1} != {1} ? {1} : {0} {2} {1} ? {0} : {1})", a, b,
    call.op() == "max" ? ">" : "<");
}

void add_naive_reductions(naive_operator_table& table) {
  for (const char* op : {"sum", "mean", "nansum"})
    table[op] = {sum, true};
  table["prod"] = {product, true};
  for (const char* op : {"any", "all"})
    table[op] = {truth, true};
  table["count_nonzero"] = {count_nonzero, true};
  for (const char* op : {"max", "min", "amax", "amin", "argmax", "argmin", "aminmax"})
    table[op] = {extreme, true};
  for (const char* op : {"var", "std", "var_mean", "std_mean"})
    table[op] = {variance, true};
  table["logsumexp"] = {logsumexp, true};
  for (const char* op : {"norm", "linalg_vector_norm"})
    table[op] = {norm, true};
  table["trace"] = {trace};
}

} // namespace gristmill
