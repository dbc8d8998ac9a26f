#pragma once

#include "gpu/mock/ptx/lexer.hpp"
#include "gpu/mock/ptx/syntax.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gristmill::ptx {

/// Recursive descent over the tokens. Throws `parse_error`.
class parser {
public:
  explicit parser(std::string_view text) : in_(text) {}
  module_syntax read();

private:
  /// What a name of the current function means in one `{ }`.
  struct names {
    struct meaning {
      operand_kind kind = operand_kind::none;
      uint32_t index = 0;
      /// Of a family `%r<8>`: `%r0` to `%r7`; 0 for a single name.
      uint32_t count = 0;
    };
    std::unordered_map<std::string_view, meaning> single;
    std::unordered_map<std::string_view, meaning> family;
    uint32_t scope = 0;
  };

  // parser_module.cpp
  void module_item();
  void target();
  void skip_section(int line);
  void source_file(int line);
  void module_variable(space where, bool is_extern);
  void function(bool is_entry, bool is_extern);
  std::vector<uint32_t> parameter_list(function_syntax& f);
  void function_directives(function_syntax& f);
  void keep(function_syntax f);

  // parser_variable.cpp
  std::vector<variable> declaration(space where, std::string_view ends);
  void array_size(variable& v, std::string_view ends);
  void initialiser(variable& v);
  void initial_value(variable& v);
  void initial_values(variable& v, uint32_t depth);

  // parser_body.cpp
  void body(function_syntax& f);
  void open_scope(function_syntax& f, uint32_t parent);
  void body_directive(function_syntax& f, const token& word);
  void source_location(int line);
  void registers(function_syntax& f);
  void label(function_syntax& f, const token& name);
  void instruction(function_syntax& f, token first);
  operand read_operand(uint32_t depth);
  operand group(operand_kind kind, std::string_view close, uint32_t depth);
  operand address(uint32_t depth);
  operand number(bool negative);
  operand word_operand(uint32_t depth);
  operand named(std::string_view name) const;

  token expect(std::string_view what);
  token expect_kind(token_kind kind, std::string_view what);
  bool accept(std::string_view what);
  void skip_to_semicolon(int line);
  void note_directive(std::string_view name);

  lexer in_;
  module_syntax out_;
  std::vector<names> scopes_;
  /// The place that the last `.loc` of the function named, and the file that the function is in.
  uint32_t file_ = 0;
  int source_ = 0;
  uint32_t own_file_ = 0;
  uint64_t registers_total_ = 0;
};

} // namespace gristmill::ptx
