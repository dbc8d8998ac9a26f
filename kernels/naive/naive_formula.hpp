#pragma once

#include "kernels/naive/naive_call.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// What a formula computes with.
enum class formula_type : uint8_t {
  /// The register type of the result.
  result,
  /// The type that the arguments share; the formula gives a truth value.
  common,
  /// Truth values.
  truth,
};

/// A pointwise operator as text. In the formula `$a`, `$b`, … are its arguments in order and `$T`
/// is the C++ type. `arguments` names them: "self other alpha=1"; a default follows `=`, and a name
/// that begins with `?` is taken as a truth value.
struct naive_formula {
  std::string_view op;
  std::string_view text;
  std::string_view arguments = "self";
  formula_type type = formula_type::result;
};

/// The formula with the arguments of a call put in; adds lines.
std::string formula_text(
  const naive_formula& formula, const naive_call& call, const naive_index& index);

} // namespace gristmill
