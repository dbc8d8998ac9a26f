#pragma once

#include "kernels/pointwise_operators.hpp"
#include "messages/result.hpp"
#include "protocol/workload.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A factor of a size that is not taken apart: an axis, or a rounded quotient.
struct size_atom {
  /// As a launch plan writes it: "axis.B", "(axis.H - 3) // 2".
  std::string plan;
  /// As an expression axis writes it: "B", "(H - 3) // 2".
  std::string axis;
  bool is_axis = true;

  friend auto operator<=>(const size_atom&, const size_atom&) = default;
};

/// The size of a dimension as a formula over the axes of a problem: a polynomial with integer
/// coefficients over axes and rounded quotients, in one normal form. So sizes that are equal by
/// arithmetic alone are equal values. Arithmetic throws `no_template` where a coefficient leaves 64
/// bits.
class symbolic_size {
public:
  /// 0.
  symbolic_size() = default;
  static symbolic_size number(int64_t value);
  static symbolic_size axis(std::string_view name);

  friend symbolic_size operator+(const symbolic_size& a, const symbolic_size& b);
  friend symbolic_size operator-(const symbolic_size& a, const symbolic_size& b);
  friend symbolic_size operator*(const symbolic_size& a, const symbolic_size& b);
  friend bool operator==(const symbolic_size&, const symbolic_size&) = default;

  /// The exact quotient, if it is a formula of this form again.
  std::optional<symbolic_size> divided_by(const symbolic_size& divisor) const;
  /// The quotient by a positive number, rounded down: exact where every coefficient is a multiple.
  symbolic_size quotient(int64_t divisor) const;

  /// The value of a formula without axes.
  std::optional<int64_t> as_number() const;
  /// The name of the axis that the formula is.
  std::optional<std::string> as_axis() const;

  /// As a launch plan writes it: "axis.B * axis.S", "2 * axis.B", "(axis.H - 3) // 2 + 1".
  std::string plan_text() const;
  /// The same in brackets where it is more than one name or number.
  std::string plan_factor() const;
  /// As the expression of an axis writes it: "B * S". `unsupported` for an axis whose name is no
  /// identifier.
  result<std::string> axis_text() const;

  /// The value for these axes.
  result<int64_t> value_at(const axis_values& axes) const;

private:
  using monomial = std::vector<size_atom>;

  void add_term(const monomial& factors, int64_t coefficient);
  template <class AtomText>
  std::string text(const AtomText& atom_text) const;

  /// No coefficient is 0.
  std::map<monomial, int64_t> terms_;
};

} // namespace gristmill
