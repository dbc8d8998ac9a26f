#include "kernels/lowering/symbolic_size.hpp"

#include "kernels/axis_scope.hpp"
#include "kernels/plan_text.hpp"
#include "protocol/expression.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace gristmill {

namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0
    && std::all_of(text.begin(), text.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out))
    throw no_template{"a size of the graph is above 2^63"};
  return out;
}

} // namespace

void symbolic_size::add_term(const monomial& factors, int64_t coefficient) {
  int64_t& sum = terms_[factors];
  if (__builtin_add_overflow(sum, coefficient, &sum))
    throw no_template{"a size of the graph is above 2^63"};
  if (sum == 0)
    terms_.erase(factors);
}

symbolic_size symbolic_size::number(int64_t value) {
  symbolic_size out;
  out.add_term({}, value);
  return out;
}

symbolic_size symbolic_size::axis(std::string_view name) {
  symbolic_size out;
  out.add_term({size_atom{qualified_name("axis", name), std::string{name}, true}}, 1);
  return out;
}

symbolic_size operator+(const symbolic_size& a, const symbolic_size& b) {
  symbolic_size out = a;
  for (const auto& [factors, coefficient] : b.terms_)
    out.add_term(factors, coefficient);
  return out;
}

symbolic_size operator-(const symbolic_size& a, const symbolic_size& b) {
  return a + symbolic_size::number(-1) * b;
}

symbolic_size operator*(const symbolic_size& a, const symbolic_size& b) {
  // A product of long sums would not be a size any more.
  constexpr size_t terms_max = 64;
  symbolic_size out;
  for (const auto& [left, x] : a.terms_) {
    for (const auto& [right, y] : b.terms_) {
      symbolic_size::monomial factors = left;
      factors.insert(factors.end(), right.begin(), right.end());
      std::sort(factors.begin(), factors.end());
      out.add_term(factors, checked_product(x, y));
    }
    if (out.terms_.size() > terms_max)
      throw no_template{"the formula of a size has too many terms"};
  }
  return out;
}

std::optional<symbolic_size> symbolic_size::divided_by(const symbolic_size& divisor) const {
  if (divisor.terms_.empty())
    return std::nullopt;
  if (*this == divisor)
    return number(1);
  if (divisor.terms_.size() != 1)
    return std::nullopt;
  const auto& [by, coefficient] = *divisor.terms_.begin();
  symbolic_size out;
  for (const auto& [factors, x] : terms_) {
    if (x % coefficient != 0)
      return std::nullopt;
    monomial rest = factors;
    for (const auto& atom : by) {
      const auto found = std::find(rest.begin(), rest.end(), atom);
      if (found == rest.end())
        return std::nullopt;
      rest.erase(found);
    }
    out.add_term(rest, x / coefficient);
  }
  return out;
}

symbolic_size symbolic_size::quotient(int64_t divisor) const {
  if (auto exact = divided_by(number(divisor)))
    return *exact;
  if (const auto value = as_number()) {
    // Sizes are not negative; what would be is refused where it is checked against the trace.
    return number(*value / divisor);
  }
  auto axis_form = axis_text();
  symbolic_size out;
  const auto wrapped = [&](const std::string& form) {
    return fmt::format("{} // {}", as_axis() ? form : "(" + form + ")", divisor);
  };
  out.add_term(
    {size_atom{wrapped(plan_text()), axis_form ? wrapped(*axis_form) : std::string{}, false}}, 1);
  return out;
}

std::optional<int64_t> symbolic_size::as_number() const {
  if (terms_.empty())
    return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty())
    return terms_.begin()->second;
  return std::nullopt;
}

std::optional<std::string> symbolic_size::as_axis() const {
  if (terms_.size() != 1 || terms_.begin()->second != 1 || terms_.begin()->first.size() != 1
    || !terms_.begin()->first.front().is_axis)
    return std::nullopt;
  return terms_.begin()->first.front().axis;
}

template <class AtomText>
std::string symbolic_size::text(const AtomText& atom_text) const {
  if (terms_.empty())
    return "0";
  // What is added first, so that no text begins with a minus where that can be; of equal sign the
  // longer products first, so that the plain number ends the text.
  std::vector<std::pair<const monomial*, int64_t>> order;
  for (const auto& [factors, coefficient] : terms_)
    order.emplace_back(&factors, coefficient);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const bool a_added = a.second > 0;
    const bool b_added = b.second > 0;
    return a_added != b_added ? a_added : a.first->size() > b.first->size();
  });
  std::string out;
  for (const auto& [factors, coefficient] : order) {
    const bool is_minus = coefficient < 0;
    if (out.empty())
      out += is_minus ? "-" : "";
    else
      out += is_minus ? " - " : " + ";
    const uint64_t size =
      is_minus ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    std::string product;
    if (size != 1 || factors->empty())
      product = fmt::format("{}", size);
    for (const auto& atom : *factors) {
      const std::string name = atom_text(atom);
      const bool needs_brackets = !atom.is_axis && (factors->size() > 1 || size != 1);
      product += (product.empty() ? "" : " * ") + (needs_brackets ? "(" + name + ")" : name);
    }
    out += product;
  }
  return out;
}

std::string symbolic_size::plan_text() const {
  return text([](const size_atom& atom) { return atom.plan; });
}

std::string symbolic_size::plan_factor() const {
  const std::string plain = plan_text();
  return as_number() || as_axis() ? plain : "(" + plain + ")";
}

result<std::string> symbolic_size::axis_text() const {
  for (const auto& [factors, coefficient] : terms_) {
    for (const auto& atom : factors) {
      if (atom.axis.empty() || (atom.is_axis && !is_identifier(atom.axis)))
        return fail(errc::unsupported,
          fmt::format("the size {} cannot be an axis of its own: the name of an axis in it is no "
                      "identifier",
            plan_text()));
    }
  }
  return text([](const size_atom& atom) { return atom.axis; });
}

result<int64_t> symbolic_size::value_at(const axis_values& axes) const {
  const auto failed = [&](const std::string& why) {
    return fail(errc::invalid_input, fmt::format("the size {}: {}", plan_text(), why));
  };
  int64_t sum = 0;
  for (const auto& [factors, coefficient] : terms_) {
    int64_t product = coefficient;
    for (const auto& atom : factors) {
      int64_t value = 0;
      if (atom.is_axis) {
        const int64_t* known = find_axis_value(axes, atom.axis);
        if (known == nullptr)
          return failed(fmt::format("axis {} has no value", atom.axis));
        value = *known;
      } else {
        const auto parsed = parse_expression(atom.plan, expression_mode::plan);
        if (!parsed)
          return failed(parsed.error().what);
        const auto found = evaluate_int(*parsed, axis_scope(axes));
        if (!found)
          return failed(found.error().what);
        value = *found;
      }
      if (__builtin_mul_overflow(product, value, &product))
        return failed("it is above 2^63");
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return failed("it is above 2^63");
  }
  return sum;
}

} // namespace gristmill
