#include "kernels/naive/naive_fold.hpp"
#include "kernels/naive/naive_operators.hpp"
#include "kernels/naive/naive_types.hpp"

#include <fmt/format.h>
#include <functional>

namespace gristmill {

namespace {

// torch's numbers for what becomes of the terms of a loss.
constexpr int64_t keep_terms = 0;
constexpr int64_t mean_of_terms = 1;

/// One term as text, at an index of the first argument.
std::string term(const naive_call& call, const naive_index& index) {
  const std::string op = call.op();
  const std::string type = "double";
  const auto& shape = call.value(call.tensor(0)).shape;
  const auto read = [&](size_t place) {
    const graph_operand* operand = call.find(place);
    if (operand == nullptr)
      call.refuse("lacks an argument");
    return call.w.let(type, call.aligned(*operand, shape, index, type));
  };
  const std::string x = read(0);
  const std::string y = read(1);
  if (op == "binary_cross_entropy") {
    // torch keeps the logarithms above -100.
    const std::string a = call.w.let(type, fmt::format("fmax(log({}), -100.0)", x));
    const std::string b = call.w.let(type, fmt::format("fmax(log(1.0 - {}), -100.0)", x));
    const std::string loss = fmt::format("-({0} * {1} + (1.0 - {0}) * {2})", y, a, b);
    return call.has(2, "weight") ? fmt::format("({}) * {}", loss, read(2)) : loss;
  }
  const std::string off = call.w.let(type, fmt::format("fabs({} - {})", x, y));
  if (op == "l1_loss")
    return off;
  if (op == "mse_loss")
    return fmt::format("{0} * {0}", off);
  const std::string limit =
    call.w.let(type, call.number(3, op == "huber_loss" ? "delta" : "beta", type, 1));
  if (op == "huber_loss")
    return fmt::format("({0} <= {1} ? 0.5 * {0} * {0} : {1} * ({0} - 0.5 * {1}))", off, limit);
  return fmt::format("({0} < {1} ? 0.5 * {0} * {0} / {1} : {0} - 0.5 * {1})", off, limit);
}

std::string elementwise_loss(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const bool has_weight = call.op() == "binary_cross_entropy";
  const int64_t how = call.integer(has_weight ? 3 : 2, "reduction", mean_of_terms);
  if (how == keep_terms)
    return naive_converted(fmt::format("({})", term(call, index)), "double", type);
  naive_fold fold(call, call.tensor(0), {}, {});
  const std::string total =
    fold.sum("double", [&](const naive_index& at) { return term(call, at); });
  return naive_converted(
    how == mean_of_terms ? fmt::format("{} / double({})", total, fold.count()) : total, "double",
    type);
}

/// Minus the score of each target's class, weighted; the second result is the sum of the weights.
std::string nll_loss(const naive_call& call, const naive_index& index) {
  const std::string type = call.type();
  const int64_t scores = call.tensor(0);
  const int64_t targets = call.tensor(1);
  const int64_t how = call.integer(3, "reduction", mean_of_terms);
  const std::string ignored = call.w.amount(call.amount(4, "ignore_index", -100));
  const auto weight_at = [&](const std::string& target) {
    const std::string weight = call.w.variable("double", "0.0");
    call.w.open(fmt::format("if ({} != {})", target, ignored));
    call.w.line(fmt::format("{} = {};", weight,
      call.has(2, "weight") ? call.read(call.tensor(2), {target}, "double") : "1.0"));
    call.w.close();
    return weight;
  };
  const bool has_batch = call.rank(scores) > 1;
  const auto term_at = [&](const naive_index& at) {
    const std::string target = call.w.let("int64_t", call.read(targets, at, "int64_t"));
    const std::string weight = weight_at(target);
    const std::string loss = call.w.variable("double", "0.0");
    call.w.open(fmt::format("if ({} != {})", target, ignored));
    call.w.line(fmt::format("{} = -{} * {};", loss, weight,
      call.read(scores, has_batch ? inserted(at, 1, target) : naive_index{target}, "double")));
    call.w.close();
    return loss;
  };
  if (how == keep_terms && call.output == 0)
    return naive_converted(term_at(index), "double", type);
  naive_fold fold(call, targets, {}, {});
  const auto weight_of = [&](const naive_index& at) {
    return weight_at(call.w.let("int64_t", call.read(targets, at, "int64_t")));
  };
  if (call.output == 1)
    return naive_converted(
      how == keep_terms ? "0.0" : fold.sum("double", weight_of), "double", type);
  const std::string total = fold.sum("double", term_at);
  if (how != mean_of_terms)
    return naive_converted(total, "double", type);
  return naive_converted(
    fmt::format("({} / {})", total, fold.sum("double", weight_of)), "double", type);
}

} // namespace

void add_naive_losses(naive_operator_table& table) {
  for (const char* op :
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"})
    table[op] = {elementwise_loss, true};
  for (const char* op : {"nll_loss_forward", "nll_loss2d_forward"})
    table[op] = {nll_loss, true};
}

} // namespace gristmill
