#pragma once

#include "gpu/mock/ptx/warp.hpp"

#include <cstdint>
#include <string_view>

/// How matrices lie in the registers of a warp, for every shape and type of `mma.sync` and
/// `wmma.mma` up to sm_90a.
///
/// With g = lane / 4 and t = lane % 4, a register of the left operand holds consecutive columns k
/// of row g, one of the right operand consecutive rows k of column g, and a result holds columns 2t
/// and 2t + 1 of row g. Larger matrices repeat that: first rows g + 8, then further k, then further
/// tiles; m8n32k16 is the transpose of m32n8k16. `wmma` fragments are opaque to programs; theirs is
/// the layout that an H200 was seen to use.
namespace gristmill::ptx {

enum class element_type : uint8_t {
  none,
  f16,
  bf16,
  tf32,
  e4m3,
  e5m2,
  s8,
  u8,
  s4,
  u4,
  b1,
  f64,
  f32,
  s32
};

/// `none` for what is no type of a matrix.
element_type element_type_of(std::string_view name);
uint32_t bits_of(element_type type);
inline bool is_byte(element_type type) {
  return type == element_type::s8 || type == element_type::u8;
}
inline bool is_float8(element_type type) {
  return type == element_type::e4m3 || type == element_type::e5m2;
}
/// The numbers of all 256 values of e4m3 or e5m2.
const float* float8_numbers(element_type type);

enum class matrix_role : uint8_t { left, right, sum };

/// One product, packed into `operation::imm`.
struct matrix_product {
  uint8_t m = 0;
  uint8_t n = 0;
  /// Depth in units of 4, for 256 does not fit.
  uint8_t quarter_k = 0;
  element_type a = element_type::none;
  element_type b = element_type::none;
  element_type c = element_type::none;
  element_type d = element_type::none;
  /// Sum of `matrix_flag`.
  uint8_t flags = 0;

  uint32_t k() const { return 4U * quarter_k; }
};
static_assert(sizeof(matrix_product) == 8);

enum matrix_flag : uint8_t {
  matrix_saturate = 1,
  /// Products of single bits by `and` instead of `xor`.
  matrix_and = 2,
  /// Only the four small products of mma.m8n8k4 of f16 depend on the layouts of the operands.
  matrix_left_by_column = 4,
  matrix_right_by_row = 8
};

struct matrix_place {
  uint32_t row = 0;
  uint32_t column = 0;
};

/// Registers of one lane that a matrix of this role needs when no element is held twice.
uint32_t matrix_registers(uint32_t m, uint32_t n, uint32_t k, matrix_role role, element_type type);
/// Where element j of register i of a lane stands in its matrix.
matrix_place place_in_matrix(uint32_t m, uint32_t n, uint32_t k, matrix_role role,
  element_type type, uint32_t lane, uint32_t i, uint32_t j);

/// Shape, type, role and layout of a `wmma.load` or `wmma.store`, packed into `operation::target`.
struct matrix_access {
  uint8_t m = 0;
  uint8_t n = 0;
  uint8_t k = 0;
  element_type type : 4 = element_type::none;
  matrix_role role : 2 = matrix_role::left;
  bool by_column : 1 = false;
};
static_assert(sizeof(matrix_access) == 4);

// matrix_product_ops.cpp
/// `imm`: a `matrix_product`; `list`: the registers of d, a, b, c; `mode`: registers of a, `bytes`:
/// of b, `elements`: of c (and d when both have one type; else `list_size` tells).
void multiply_matrices(lane_state& s, const operation& o);
/// mma.m8n8k4 of f16: four independent products, one for each quarter of the lanes.
void multiply_quarters(lane_state& s, const operation& o);

// wmma_ops.cpp
/// Registers in `list`; b: elements from row to row.
void load_fragment(lane_state& s, const operation& o);
void store_fragment(lane_state& s, const operation& o);
/// movmatrix: the transpose of an 8x8 matrix of 16-bit values.
void transpose_matrix(lane_state& s, const operation& o);

} // namespace gristmill::ptx
