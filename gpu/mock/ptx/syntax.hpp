#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The text as a tree, with the names of registers, variables and labels resolved.
namespace gristmill::ptx {

enum class operand_kind : uint8_t {
  /// `_`: the value is not wanted.
  none,
  reg,
  predicate,
  integer,
  floating,
  /// Variable of the function: index in `function_syntax::variables`.
  variable,
  /// A name that the function does not declare: module variable, function, label.
  symbol,
  /// `%tid.x` and its like, with the percent sign.
  special,
  /// `{a, b}`
  vector,
  /// `(a, b)` of a call.
  list,
  /// `[base+offset]`: `parts[0]` is the base, `parts[1]` coordinates when there are some.
  address
};

struct operand {
  operand_kind kind = operand_kind::none;
  /// `!p`
  bool negated = false;
  /// Bits of a floating immediate: 32 (`0f`), 64 (`0d`), or 0 for a decimal number.
  uint8_t float_bits = 0;
  /// Register, predicate or variable.
  uint32_t index = 0;
  /// Integer immediate, bits of a `0f` or `0d` immediate, offset of an address.
  int64_t integer = 0;
  double number = 0;
  std::string_view text;
  /// Vector and list: the elements. Address: the base, then coordinates. Of `a|b`: b.
  std::vector<operand> parts;
};

struct statement {
  int line = 0;
  /// From the guard or the opcode up to the semicolon.
  std::string_view text;
  int64_t guard = -1;
  bool guard_negated = false;
  /// `ld`, `param`, `u64`
  std::vector<std::string_view> opcode;
  std::vector<operand> operands;
  /// Scope in which the statement stands, for its labels.
  uint32_t scope = 0;
  /// As `.loc` says: number of a file and line in it; 0 when it is not known.
  uint32_t file = 0;
  int source = 0;
};

enum class space : uint8_t { generic, global, shared, local, parameter, constant };

struct variable {
  std::string_view name;
  space where = space::global;
  int line = 0;
  uint32_t align = 1;
  /// Bytes of one element.
  uint32_t width = 1;
  uint64_t bytes = 0;
  std::string_view type;
  /// `extern .shared x[]`: its size is known at the launch.
  bool dynamic = false;
  /// Declared `.extern` elsewhere: no storage here.
  bool is_extern = false;
  /// Leading values of the initialiser, one an element.
  std::vector<uint64_t> values;
  /// Elements that are addresses: element number, symbol, offset. The value is 0 then.
  struct reference {
    uint64_t element = 0;
    std::string_view symbol;
    int64_t offset = 0;
  };
  std::vector<reference> references;
};

struct register_declaration {
  /// Bytes; 0 for a predicate.
  uint8_t width = 0;
};

struct scope_syntax {
  uint32_t parent = 0;
  /// Label to index in `function_syntax::labels`.
  std::map<std::string_view, uint32_t> labels;
  std::map<std::string_view, std::vector<std::string_view>> branch_targets;
};

struct function_syntax {
  std::string_view name;
  int line = 0;
  bool is_entry = false;
  bool has_body = false;
  /// Variables that are the parameters and the return values, in order.
  std::vector<uint32_t> parameters;
  std::vector<uint32_t> results;
  uint32_t max_threads = 0;
  /// `.reqntid`: zeros when it is absent.
  uint32_t required_block[3] = {};
  uint32_t registers_max = 0;
  uint32_t blocks_per_sm_min = 0;
  /// `.reqnctapercluster`: zeros when it is absent.
  uint32_t cluster[3] = {};
  std::vector<register_declaration> registers;
  std::vector<variable> variables;
  std::vector<statement> statements;
  std::vector<scope_syntax> scopes;
  /// Number of the statement before which each label stands.
  std::vector<uint32_t> labels;
};

struct module_syntax {
  std::string_view target;
  std::vector<std::string_view> directives;
  /// Of `.file`, by number, without folders.
  std::map<uint32_t, std::string> files;
  std::vector<variable> variables;
  /// Declarations are replaced by the definition once there is one.
  std::vector<function_syntax> functions;
};

/// Bytes of a type without its dot ("u64", "f16x2", "pred" = 0); -1 for what is no type.
int type_bytes(std::string_view type);

/// Throws `parse_error`. The views in the result point into `text`.
module_syntax read_module(std::string_view text);

} // namespace gristmill::ptx
