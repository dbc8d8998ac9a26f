#include "kernels/families/size_product.hpp"

#include "kernels/plan_text.hpp"
#include "kernels/pointwise_operators.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && text.size() < 18
    && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The factors of "A * B * 2"; empty when the text is anything but a product.
std::vector<std::string> factors_of(std::string_view text) {
  std::vector<std::string> factors;
  std::string word;
  bool wants_factor = true;
  const auto finish = [&] {
    if (word.empty())
      return true;
    const bool is_fine = wants_factor;
    factors.push_back(word);
    word.clear();
    wants_factor = false;
    return is_fine;
  };
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!finish())
      return {};
    if (c == '*' && !wants_factor)
      wants_factor = true;
    else if (c != ' ')
      return {};
  }
  return finish() && !wants_factor ? factors : std::vector<std::string>{};
}

/// The identifiers of an expression.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  std::string word;
  for (char c : std::string{text} + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      if (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) == 0)
        names.push_back(word);
      word.clear();
    }
  }
  return names;
}

} // namespace

std::string size_product::text() const {
  std::vector<std::string> factors;
  for (const auto& axis_name : axes)
    factors.push_back(qualified_name("axis", axis_name));
  if (number != 1 || factors.empty())
    factors.insert(factors.begin(), fmt::format("{}", number));
  return product_text(factors);
}

int64_t size_product::at(const axis_values& values) const {
  int64_t product = number;
  for (const auto& axis_name : axes) {
    const int64_t* value = find_axis_value(values, axis_name);
    if (value == nullptr || __builtin_mul_overflow(product, *value, &product))
      return INT64_MAX;
  }
  return product;
}

size_product operator*(const size_product& a, const size_product& b) {
  size_product product{0, a.axes};
  if (__builtin_mul_overflow(a.number, b.number, &product.number))
    throw no_template{"a size is larger than any memory"};
  if (product.number == 0)
    return {0, {}};
  product.axes.insert(product.axes.end(), b.axes.begin(), b.axes.end());
  std::sort(product.axes.begin(), product.axes.end());
  return product;
}

std::optional<size_product> divided(const size_product& a, const size_product& b) {
  if (b.number == 0 || a.number % b.number != 0
    || !std::includes(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end()))
    return std::nullopt;
  size_product quotient{a.number / b.number, {}};
  std::set_difference(
    a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(), std::back_inserter(quotient.axes));
  return quotient;
}

size_names::size_names(const problem& target, const op_graph& graph)
  : def_(target.def), graph_(graph) {
  if (!target.workloads.empty()) {
    if (auto values = resolve_axes(target.def, target.workloads.front().axes); values)
      example_ = std::move(*values);
  }
}

size_product size_names::of_axis(const axis& from, int depth) const {
  const size_product itself{1, {from.name}};
  if (from.kind == axis_kind::constant)
    return {from.value, {}};
  if (from.kind == axis_kind::variable || depth > 8)
    return itself;
  const auto names = names_in(from.expression);
  const bool is_constant = std::all_of(names.begin(), names.end(), [&](const auto& name) {
    const axis* known = def_.find_axis(name);
    return known != nullptr && known->kind == axis_kind::constant;
  });
  // Of constants only: every workload gives the same.
  if (const int64_t* value = find_axis_value(example_, from.name); is_constant && value != nullptr)
    return {*value, {}};
  size_product product;
  const auto factors = factors_of(from.expression);
  for (const auto& factor : factors) {
    const axis* known = def_.find_axis(factor);
    if (known == nullptr && !is_digits(factor))
      return itself;
    product = product
      * (known != nullptr ? of_axis(*known, depth + 1) : size_product{std::stoll(factor), {}});
  }
  return factors.empty() ? itself : product;
}

size_product size_names::of_label(std::string_view label) const {
  if (const axis* known = def_.find_axis(label); known != nullptr)
    return of_axis(*known, 0);
  if (is_digits(label))
    return {std::stoll(std::string{label}), {}};
  return {1, {std::string{label}}};
}

std::optional<size_product> size_names::of_traced(int64_t traced, int64_t again) const {
  std::optional<size_product> found;
  bool is_ambiguous = false;
  const auto add = [&](const size_product& size) {
    is_ambiguous = is_ambiguous || (found && *found != size);
    found = found ? found : size;
  };
  for (const auto& [name, size] : graph_.axes) {
    const axis* known = def_.find_axis(name);
    if (size != traced || known == nullptr)
      continue;
    if (again != 0) {
      const auto second = std::find_if(graph_.axes_again.begin(), graph_.axes_again.end(),
        [&](const auto& one) { return one.first == name; });
      if (second != graph_.axes_again.end() && second->second != again)
        continue;
    }
    add(of_axis(*known, 0));
  }
  if (is_ambiguous)
    return std::nullopt;
  // The same in both traces and no axis: a number of the reference's own.
  if (!found && (again == 0 || again == traced))
    return size_product{traced, {}};
  return found;
}

} // namespace gristmill
