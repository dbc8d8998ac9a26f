#include "kernels/naive/naive_sizes.hpp"

#include "kernels/naive/naive_views.hpp"
#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace gristmill {

namespace {

bool is_number(const std::string& plan) {
  return !plan.empty() && std::all_of(plan.begin(), plan.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

naive_size joined(const naive_size& a, std::string_view sign, const naive_size& b, int64_t traced) {
  if (is_number(a.plan) && is_number(b.plan) && traced >= 0)
    return naive_constant(traced);
  return {fmt::format("({} {} {})", a.plan, sign, b.plan), traced};
}

/// An axis with its sizes in both traces.
struct traced_axis {
  naive_size size;
  int64_t again = -1;
  axis_kind kind = axis_kind::variable;
};

std::vector<traced_axis> traced_axes(const op_graph& graph, const definition& def) {
  std::vector<traced_axis> list;
  for (const auto& [name, size] : graph.axes) {
    const axis* known = def.find_axis(name);
    if (known == nullptr)
      continue;
    traced_axis one{{qualified_name("axis", name), size}, -1, known->kind};
    for (const auto& [other, again] : graph.axes_again) {
      if (other == name)
        one.again = again;
    }
    list.push_back(std::move(one));
  }
  return list;
}

} // namespace

naive_size operator+(const naive_size& a, const naive_size& b) {
  if (b.plan == "0")
    return a;
  if (a.plan == "0")
    return b;
  int64_t traced = 0;
  if (__builtin_add_overflow(a.traced, b.traced, &traced))
    throw no_template{"a size of the trace is too large"};
  return joined(a, "+", b, traced);
}

naive_size operator-(const naive_size& a, const naive_size& b) {
  if (b.plan == "0")
    return a;
  int64_t traced = 0;
  if (__builtin_sub_overflow(a.traced, b.traced, &traced))
    throw no_template{"a size of the trace is too large"};
  return joined(a, "-", b, traced);
}

naive_size operator*(const naive_size& a, const naive_size& b) {
  if (b.plan == "1")
    return a;
  if (a.plan == "1")
    return b;
  int64_t traced = 0;
  if (__builtin_mul_overflow(a.traced, b.traced, &traced))
    throw no_template{"a tensor of the trace has too many elements"};
  return joined(a, "*", b, traced);
}

naive_size naive_constant(int64_t number) {
  if (number == INT64_MIN)
    throw no_template{"a number is too small for a size"};
  return {number < 0 ? fmt::format("(0 - {})", -number) : fmt::format("{}", number), number};
}

naive_size naive_product(const std::vector<naive_size>& factors) {
  naive_size total = naive_constant(1);
  for (const naive_size& factor : factors)
    total = total * factor;
  return total;
}

naive_sizes::naive_sizes(const op_graph& graph, const definition& def) : graph_(graph), def_(def) {
  const auto declared = [&](const tensor_spec& spec, const graph_value& what) {
    if (spec.is_scalar)
      return;
    if (spec.shape.size() != what.shape.size())
      throw no_template{
        fmt::format("tensor '{}' was traced with other dimensions than declared", spec.name)};
    std::vector<naive_size> sizes;
    for (size_t i = 0; i < spec.shape.size(); ++i)
      sizes.push_back(
        {is_number(spec.shape[i]) ? spec.shape[i] : qualified_name("axis", spec.shape[i]),
          what.shape[i]});
    shapes_.emplace(what.id, std::move(sizes));
  };
  for (const auto& what : graph.values) {
    if (what.source != graph_source::input)
      continue;
    const tensor_spec* spec = def.find_input(what.name);
    if (spec == nullptr || spec->is_scalar)
      throw no_template{
        fmt::format("the graph's input '{}' is no such tensor of the definition", what.name)};
    declared(*spec, what);
  }
  for (size_t i = 0; i < graph.outputs.size() && i < def.outputs.size(); ++i) {
    if (const graph_value* what = find_value(graph, graph.outputs[i]);
        what != nullptr && !shapes_.contains(what->id))
      declared(def.outputs[i], *what);
  }
  for (const auto& node : graph.nodes) {
    for (int64_t id : node.outputs)
      origins_[id] = &node;
  }
}

const std::vector<naive_size>& naive_sizes::shape(int64_t id) {
  if (const auto found = shapes_.find(id); found != shapes_.end())
    return found->second;
  const graph_value* what = find_value(graph_, id);
  if (what == nullptr)
    throw no_template{fmt::format("the graph has no value {}", id)};
  auto sizes = derived(*what);
  return shapes_.emplace(id, std::move(sizes)).first->second;
}

std::vector<naive_size> naive_sizes::derived(const graph_value& what) {
  if (const auto origin = origins_.find(what.id); origin != origins_.end()) {
    if (auto sizes = naive_view_shape(*origin->second, graph_, what, *this))
      return *sizes;
  }
  std::vector<naive_size> sizes;
  for (size_t i = 0; i < what.shape.size(); ++i) {
    const bool has_again = what.shape_again.size() == what.shape.size();
    sizes.push_back(known(what.shape[i], has_again ? what.shape_again[i] : -1));
  }
  return sizes;
}

naive_size naive_sizes::known(int64_t traced, int64_t again) const {
  // What both traces agree on, with every variable axis changed, is a constant.
  if (again >= 0 && again == traced)
    return naive_constant(traced);
  const auto axes = traced_axes(graph_, def_);
  const auto agrees = [&](const traced_axis& one, int64_t first, int64_t second) {
    return one.size.traced == first && (again < 0 || one.again < 0 || one.again == second);
  };
  for (const axis_kind kind : {axis_kind::variable, axis_kind::expression}) {
    std::set<std::string> found;
    for (const traced_axis& one : axes) {
      if (one.kind == kind && agrees(one, traced, again))
        found.insert(one.size.plan);
    }
    if (found.size() > 1 && kind == axis_kind::variable)
      throw no_template{fmt::format("a size {} in the trace fits two axes", traced)};
    if (!found.empty())
      return {*found.begin(), traced};
  }
  // A multiple of an axis, or a product of two.
  std::optional<naive_size> product;
  for (const traced_axis& one : axes) {
    const int64_t base = one.size.traced;
    if (one.kind != axis_kind::variable || base < 2 || traced % base != 0)
      continue;
    const int64_t factor = traced / base;
    if (again >= 0 && one.again > 0 && again % one.again == 0 && again / one.again == factor) {
      product = one.size * naive_constant(factor);
      break;
    }
    for (const traced_axis& other : axes) {
      if (&other != &one && other.kind == axis_kind::variable && other.size.traced == factor
        && (again < 0 || one.again < 0 || other.again < 0 || one.again * other.again == again))
        product = one.size * other.size;
    }
    if (!product && again < 0)
      throw no_template{
        fmt::format("a size {} in the trace follows the axes in a way not understood", traced)};
  }
  if (product)
    return *product;
  if (again >= 0) {
    for (const traced_axis& one : axes) {
      const int64_t more = traced - one.size.traced;
      if (one.kind == axis_kind::variable && one.again >= 0 && again - one.again == more)
        return one.size + naive_constant(more);
    }
    throw no_template{
      fmt::format("a size that is {} and {} in two traces follows the axes in a way not understood",
        traced, again)};
  }
  return naive_constant(traced);
}

naive_size naive_sizes::integer(std::string_view op, int64_t number, bool varies) const {
  if (!varies || number == INT64_MIN)
    return naive_constant(number);
  const auto axes = traced_axes(graph_, def_);
  std::set<std::string> found;
  const auto search = [&](const auto& formula) {
    for (const traced_axis& one : axes) {
      if (found.empty() || one.kind == axis_kind::variable)
        formula(one);
    }
    if (found.size() > 1)
      throw no_template{
        fmt::format("operator '{}' has an argument {}, which fits two axes", op, number)};
    return !found.empty();
  };
  const auto sized = [&]() { return naive_size{*found.begin(), number}; };
  if (search([&](const traced_axis& one) {
        if (one.kind != axis_kind::constant && one.size.traced == number)
          found.insert(one.size.plan);
      }))
    return sized();
  for (int64_t off : {-1, 1}) {
    if (search([&](const traced_axis& one) {
          if (one.kind != axis_kind::constant && one.size.traced + off == number)
            found.insert((one.size + naive_constant(off)).plan);
        }))
      return sized();
  }
  if (search([&](const traced_axis& one) {
        if (one.kind != axis_kind::constant && number < 0 && one.size.traced == -number)
          found.insert(fmt::format("(0 - {})", one.size.plan));
      }))
    return sized();
  if (search([&](const traced_axis& one) {
        if (one.kind == axis_kind::variable && one.size.traced > 1 && number > 0
          && number % one.size.traced == 0)
          found.insert((one.size * naive_constant(number / one.size.traced)).plan);
      }))
    return sized();
  throw no_template{fmt::format(
    "operator '{}' has an argument {} that follows the shape in a way not understood", op, number)};
}

std::string naive_sizes::number(std::string_view op, double number) const {
  std::set<std::string> found;
  const auto tried = [&](double value, const std::string& text) {
    if (std::abs(value - number) <= 1e-12 * std::abs(number))
      found.insert(text);
  };
  for (const traced_axis& one : traced_axes(graph_, def_)) {
    if (one.kind == axis_kind::constant || one.size.traced < 1)
      continue;
    const auto size = static_cast<double>(one.size.traced);
    const std::string plan = fmt::format("float({})", one.size.plan);
    tried(size, plan);
    tried(1 / size, fmt::format("1.0 / {}", plan));
    tried(std::sqrt(size), fmt::format("sqrt({})", plan));
    tried(1 / std::sqrt(size), fmt::format("1.0 / sqrt({})", plan));
    tried(-size, fmt::format("0.0 - {}", plan));
  }
  if (found.size() != 1)
    throw no_template{fmt::format(
      "operator '{}' has a number {} that follows the shape in a way not understood", op, number)};
  return *found.begin();
}

} // namespace gristmill
