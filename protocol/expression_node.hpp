#pragma once

#include "protocol/expression.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What the parser leaves. The evaluator, the exporter and the linker of programs walk it; nobody
/// else includes this.
struct expression_node {
  enum class kind : uint8_t {
    integer,
    floating,
    boolean,
    name,
    /// `spelling` is "+", "-" or "not".
    unary,
    /// `spelling` is the operator.
    binary,
    /// A pure function of its children.
    call,
    /// A function of a tensor or a step: `subject`, and for `dim` one child.
    subject_call,
  };

  kind what = kind::boolean;
  int64_t integer = 0;
  double floating = 0;
  bool boolean = true;
  /// Points into a static table, never into the text.
  std::string_view spelling;
  expression_name subject;
  /// Indices into the vector of nodes; smaller than this node's own. The root is the last node.
  std::vector<uint32_t> children;
};

struct function_row {
  std::string_view name;
  size_t arguments_min;
  size_t arguments_max;
  bool takes_subject;
};

inline constexpr std::array<function_row, 19> expression_functions{{
  {"min", 2, 16, false},
  {"max", 2, 16, false},
  {"clamp", 3, 3, false},
  {"ceil_div", 2, 2, false},
  {"align_up", 2, 2, false},
  {"next_pow2", 1, 1, false},
  {"ilog2", 1, 1, false},
  {"abs", 1, 1, false},
  {"select", 3, 3, false},
  {"int", 1, 1, false},
  {"float", 1, 1, false},
  {"sqrt", 1, 1, false},
  {"rsqrt", 1, 1, false},
  {"exp2", 1, 1, false},
  {"log2", 1, 1, false},
  {"dim", 2, 2, true},
  {"numel", 1, 1, true},
  {"bytes", 1, 1, true},
  {"ctype", 1, 1, true},
}};

/// Takes a step, not a tensor.
inline constexpr function_row occupancy_row{"occupancy", 1, 1, true};

} // namespace gristmill
