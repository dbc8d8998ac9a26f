#pragma once

#include "messages/result.hpp"
#include "protocol/expression.hpp"

#include <string>
#include <string_view>

namespace gristmill {

/// What the names of an expression are called in the C++ that it becomes.
class code_names {
public:
  virtual ~code_names() = default;
  /// C++ of type `gm::value` for a name that stands for a value.
  virtual result<std::string> value_code(const expression_name& name) const = 0;
  /// The same for `dim`, `numel`, `bytes`, `ctype` and `occupancy`; `index` is the code of the
  /// second argument of `dim`.
  virtual result<std::string> call_code(
    std::string_view function, const expression_name& subject, const std::string& index) const = 0;
};

/// The expression as C++ of type `gm::value` (exporter/runtime/gm_value.h), which computes at run
/// time what `evaluate` computes here: checked 64-bit integers, and `and`, `or` and `select` look
/// only at what they need. Fails where a name has no code.
result<std::string> expression_code(const expression& parsed, const code_names& names);

} // namespace gristmill
