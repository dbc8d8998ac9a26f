#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gristmill {

enum class expression_mode : uint8_t {
  /// Launch plans (contracts, section 4): booleans, comparisons, functions; `/` of integers must
  /// be exact.
  plan,
  /// Expression axes (specification 1.5): the arithmetic subset of Python.
  axis,
};

/// A C++ type, the value of `ctype(t)`.
struct type_name {
  std::string text;

  friend bool operator==(const type_name&, const type_name&) = default;
};

using expression_value = std::variant<int64_t, double, bool, type_name>;

/// The value as a message shows it.
std::string value_text(const expression_value& value);

/// What a name in an expression stands for: bare ("M") or qualified ("axis.M", "scratch.part",
/// `axis("odd name")`).
struct expression_name {
  /// "in", "out", "axis", "scratch", or empty.
  std::string kind;
  std::string name;

  friend bool operator==(const expression_name&, const expression_name&) = default;
};

std::string name_text(const expression_name& name);

/// Where an expression finds its names. The pure functions (`min`, `ceil_div`, ...) need no scope.
class expression_scope {
public:
  virtual ~expression_scope() = default;
  /// The value of a name; the failure names the nearest known one.
  virtual result<expression_value> lookup(const expression_name& name) const = 0;
  /// `dim(t, index)`, `numel(t)`, `bytes(t)`, `ctype(t)` of a tensor and `occupancy(step)`; the
  /// index is there for `dim` only. The default refuses all of them.
  virtual result<expression_value> call(
    std::string_view function, const expression_name& subject, std::optional<int64_t> index) const;
};

struct expression_node;

/// A parsed expression: immutable, cheap to copy. A default one is the literal `true`.
class expression {
public:
  expression();
  expression(std::string text, std::shared_ptr<const std::vector<expression_node>> nodes,
    expression_mode mode);

  const std::string& text() const { return text_; }
  expression_mode mode() const { return mode_; }
  const std::vector<expression_node>& nodes() const { return *nodes_; }

  /// The name when the expression is nothing else, so that an argument can be a buffer.
  std::optional<expression_name> as_name() const;
  /// True when the function is called anywhere in it.
  bool calls(std::string_view function) const;

private:
  std::string text_;
  std::shared_ptr<const std::vector<expression_node>> nodes_;
  expression_mode mode_ = expression_mode::plan;
};

/// At most 4,096 bytes, a nesting of 64 and 1,000 operands and operators. The failure shows the
/// text and the column.
result<expression> parse_expression(std::string_view text, expression_mode mode);

/// Checked 64-bit integers: an overflow, a division by zero, a number that is not finite or a
/// value of the wrong kind is a failure that names the operator. `and`, `or` and `select` look
/// only at what they need.
result<expression_value> evaluate(const expression& parsed, const expression_scope& scope);

/// The value that must be an integer (a double only in axis mode, and only if it is integral).
result<int64_t> evaluate_int(const expression& parsed, const expression_scope& scope);
/// The value that must be a bool.
result<bool> evaluate_bool(const expression& parsed, const expression_scope& scope);

/// An axis expression over axes that are known by now.
result<int64_t> evaluate_axis(
  std::string_view text, const std::vector<std::pair<std::string, int64_t>>& axes);

} // namespace gristmill
