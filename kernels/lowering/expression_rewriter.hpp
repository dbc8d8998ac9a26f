#pragma once

#include "messages/result.hpp"
#include "protocol/expression.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// What the names in an expression become. Every answer must stand as an operand without brackets
/// around it: a name, a number, a call, or something in brackets.
class name_rewriter {
public:
  virtual ~name_rewriter() = default;
  virtual result<std::string> name(const expression_name& from) const = 0;
  /// `dim(t, index)`, `numel(t)`, `bytes(t)`, `ctype(t)`, `occupancy(step)`. `index` is there when
  /// the expression has it as a plain number, `index_text` when it has one at all.
  virtual result<std::string> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index, const std::string& index_text) const = 0;
};

/// The text of a launch-plan expression with other names, with brackets only where they are needed.
result<std::string> rewritten(const expression& from, const name_rewriter& names);

/// Parses first. An empty text stays empty.
result<std::string> rewritten(std::string_view text, const name_rewriter& names);

/// True for an expression whose value is a truth value whatever its names mean.
bool is_truth(const expression& of);

} // namespace gristmill
