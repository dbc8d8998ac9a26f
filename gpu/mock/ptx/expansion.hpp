#pragma once

#include "gpu/mock/ptx/operation.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/mock/ptx/syntax.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace gristmill::ptx {

/// What a PTX instruction or a call of the math library is on the machine: instructions by pipe, in
/// eighths, and cycles from operand to result.
struct expansion {
  /// PTX text of the opcode, or "call.NAME".
  std::string_view name;
  uint16_t issue = 0;
  /// Logic, comparisons, conversions of a format; half of the rate of `fma`.
  uint16_t alu = 0;
  /// Floating point of 32 bits and products of integers; `heavy` of them on the half of the pipe
  /// that can do the latter.
  uint16_t fma = 0;
  uint16_t heavy = 0;
  /// Special functions.
  uint16_t xu = 0;
  uint16_t fp64 = 0;
  uint16_t cycles = 0;
};

/// All that were measured, with ptxas of CUDA 13.0 for sm_90a on an H200 (probe `expansion`): what
/// stands in the table is several instructions, or not on the pipe that its kind of instruction is
/// on as a rule. Number 0 is none of them.
const std::vector<expansion>& expansions();

/// Number of what a statement becomes; 0 when it is none of them. Types of the same width count as
/// one where signs make no difference. Moves between registers, and logic of predicates, are
/// names and operands of other instructions: the last row, which has nothing.
uint16_t find_expansion(const statement& of);
/// Of a function of the math library.
uint16_t find_expansion_of_call(std::string_view function);

/// Adds what an operation is on the machine when so many warps execute it. What no row says is one
/// instruction on the pipe of its category; loads of parameters are operands of others.
void add_machine(machine_counts& to, const operation& o, uint64_t instructions);

} // namespace gristmill::ptx
