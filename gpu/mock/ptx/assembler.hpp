#pragma once

#include "gpu/mock/ptx/kernel.hpp"
#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/syntax.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gristmill::ptx {

/// What all kernels of a module share while they are decoded.
struct module_scope {
  const module_syntax* syntax = nullptr;
  std::unordered_map<std::string_view, const function_syntax*> functions;
  std::unordered_map<std::string_view, const variable*> variables;
  std::unordered_map<std::string_view, uint64_t> addresses;
  std::set<std::string> specials;
  size_t operations = 0;
  /// See the function of that name.
  std::map<const function_syntax*, std::vector<bool>> register_variables;
};

/// Which variables of a function are `.param` variables that need no memory, because each access
/// is one of the whole variable by its name.
const std::vector<bool>& register_variables(module_scope& scope, const function_syntax& f);

/// Turns the statements of one entry into operations; calls are expanded in place. The decoders
/// (`decode_*.cpp`) use it to fetch operands and to emit. Throws `parse_error`.
class assembler {
public:
  assembler(module_scope& scope, kernel& out) : scope_(scope), out_(out) {}
  void assemble(const function_syntax& entry);

  // Operands. Each call notes what the operation to be emitted next reads or writes.

  /// A register of this width that holds the operand. `immediates`: see `lane_entry`.
  uint32_t read(const operand& o, uint32_t bytes, char immediates = 'i');
  uint32_t write(const operand& o, uint32_t bytes);
  uint32_t read_predicate(const operand& o);
  uint32_t write_predicate(const operand& o);
  /// Notes and returns a register number that is known already.
  uint32_t reads(uint32_t reg);
  uint32_t writes(uint32_t reg);
  uint32_t constant(uint64_t value, uint32_t bytes);
  uint32_t temporary(uint32_t bytes);
  uint32_t new_predicate();
  uint32_t writes_predicate(uint32_t predicate);
  uint32_t reads_predicate(uint32_t predicate);
  uint32_t special_register(special which, uint32_t bytes);
  /// A register that is filled with bytes of the parameters at the start.
  uint32_t parameter(uint32_t offset, uint32_t bytes, uint32_t register_bytes, bool sign_extend);
  /// Bytes of the register that the operand is; 0 for `_` and immediates.
  uint32_t width(const operand& o) const;
  /// Address operand into `a`, `imm`, `address_bytes` and, for a symbol in generic space, `where`.
  void address(operation& op, const operand& o, space where);
  void list(operation& op, const std::vector<uint32_t>& registers);

  /// What a variable is: needed for `ld.param` and `st.param`.
  struct place {
    enum { memory, dynamic_shared, parameter_bank, in_register } kind = memory;
    space where = space::global;
    uint64_t address = 0;
    uint32_t reg = 0;
    uint32_t bytes = 0;
  };
  place locate(const operand& o);

  /// Appends an operation with the guard of the current statement.
  void emit(operation op);
  /// The same, not counted and not an instruction of the text.
  void emit_hidden(operation op);

  const statement& current() const { return *statement_; }
  int line() const { return statement_ ? statement_->line : 0; }
  bool is_entry() const { return frames_.size() == 1; }
  /// `unsupported` for the whole current instruction.
  [[noreturn]] void cannot(const std::string& why) const;
  [[noreturn]] void wrong(const std::string& why) const;

  // Control flow.
  void branch(std::string_view label);
  void indexed_branch(uint32_t index, std::string_view list);
  void leave();
  void call(const operand* results, const operand& callee, const operand* arguments);
  const lane_entry* find_lane(const std::string& key) const;

private:
  struct frame {
    const function_syntax* function = nullptr;
    /// Number of each register or predicate of the function in the kernel.
    std::vector<uint32_t> registers;
    std::vector<place> variables;
    std::vector<uint32_t> starts;
    struct fix {
      uint32_t operation = 0;
      uint32_t label = 0;
      /// Index in `lists`, for a table of labels; -1 for `target`.
      int64_t entry = -1;
    };
    std::vector<fix> fixes;
    std::vector<uint32_t> returns;
  };

  void run_frame();
  void find_straight_runs();
  void open_frame(const function_syntax& f);
  void declare_variables(frame& f);
  void place_shared(const variable& v, place& p);
  void place_local(const variable& v, place& p);
  void close_frame(bool is_entry);
  uint32_t find_label(std::string_view name) const;
  void inline_call(const function_syntax& f, const operand* results, const operand* arguments);
  void indirect_call(const operand* results, const operand& callee, const operand* arguments);
  bool library_call(std::string_view name, const operand* results, const operand* arguments);
  void runtime_call(std::string_view name, const operand* results, const operand* arguments);
  place argument(const operand* list, size_t index, uint64_t bytes);
  uint32_t load_place(const place& p, uint32_t bytes);
  void store_place(const place& p, uint32_t reg, uint32_t bytes);
  uint32_t read_special(const operand& o, uint32_t bytes);
  uint32_t read_address(const operand& o, uint32_t bytes);
  uint32_t new_register(uint32_t bytes, bool fixed);

  module_scope& scope_;
  kernel& out_;
  std::vector<frame> frames_;
  const statement* statement_ = nullptr;
  uint32_t source_ = 0;
  std::vector<uint32_t> pending_reads_;
  std::vector<uint32_t> pending_writes_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants_;
  std::map<std::pair<special, uint32_t>, uint32_t> specials_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, bool>, uint32_t> parameters_;
  std::map<const variable*, place> shared_;
  uint64_t register_numbers_bytes_ = 0;
};

/// Decodes the current statement. In `decode.cpp`.
void decode(assembler& as);

} // namespace gristmill::ptx
