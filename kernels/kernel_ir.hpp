#pragma once

#include "tensors/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gristmill {

/// What a fused kernel computes with: float32 numbers, and truth values where an operator says so.
enum class ir_op : uint8_t {
  // Leaves.
  load,
  constant,
  /// A null-shape input of the problem.
  scalar,
  /// Number of elements in the reduced row, as a float.
  row_length,
  /// Result of a reduction over the row; `args[0]` is its body.
  reduce,
  /// A value that the template itself provides, such as an element of a matrix product.
  given,
  // One argument.
  neg,
  abs,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sqrt,
  rsqrt,
  reciprocal,
  sigmoid,
  silu,
  tanh,
  gelu,
  gelu_tanh,
  relu,
  hardswish,
  erf,
  sin,
  cos,
  round_bf16,
  round_fp16,
  /// A truth value as 0 or 1.
  as_number,
  logical_not,
  // Two arguments.
  add,
  sub,
  mul,
  div,
  pow,
  minimum,
  maximum,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  // Three: condition, then, else.
  where,
};

enum class reduction_kind : uint8_t { sum, maximum, minimum };

/// How often the value of a node changes.
enum class ir_level : uint8_t {
  /// One value for the whole call.
  uniform = 0,
  /// One for each row.
  row,
  /// One for each element.
  element,
};

struct ir_node {
  ir_op op = ir_op::constant;
  /// Indices of earlier nodes; -1 where the operator has fewer.
  std::array<int, 3> args{-1, -1, -1};
  double number = 0;
  /// `load`: index into `fused_kernel::loads`.
  int load = -1;
  /// `scalar`: index into the definition's inputs.
  int scalar = -1;
  reduction_kind reduction = reduction_kind::sum;
  /// The node is a truth value.
  bool is_bool = false;
};

/// Where one dimension of a loaded tensor gets its index from.
struct index_term {
  /// Dimension of the iteration space, or -1 for an index that is the same for all elements.
  int dim = -1;
  /// Launch-plan expression that is added to the index; empty for 0.
  std::string offset;

  friend auto operator<=>(const index_term&, const index_term&) = default;
};

/// A tensor input read through an index map.
struct ir_load {
  /// Index into the definition's inputs.
  int input = 0;
  dtype type = dtype::float32;
  /// One for each dimension of the tensor.
  std::vector<index_term> index;
  /// Whether that dimension is as long as the space's dimension of its term.
  std::vector<bool> is_full;
  /// Whether that dimension had size 1 in the trace.
  std::vector<bool> is_unit;
  /// True when the index depends on the last dimension of the space / on any other.
  bool uses_last = false;
  bool uses_leading = false;
};

struct ir_output {
  /// Index into the definition's outputs.
  int output = 0;
  dtype type = dtype::float32;
  /// Before the rounding to `type`, which storing does.
  int node = 0;
  /// The output has one element a row, not one an element.
  bool is_per_row = false;
  /// The output has one element a column: the sum of `node` over all rows.
  bool is_per_column = false;
};

/// One dimension of the iteration space.
struct space_dim {
  /// Its size as a launch-plan expression, such as `dim(in.x, 1)`.
  std::string size;
  int64_t traced = 0;
};

enum class template_family : uint8_t {
  /// No reduction: every element of the space for itself.
  elementwise,
  /// Reductions over the last dimension, with arithmetic before, between and after.
  row,
};

/// A whole problem as one kernel: what each output element is, in terms of loads.
struct fused_kernel {
  template_family family = template_family::elementwise;
  /// For `row` the last dimension is the one that is reduced.
  std::vector<space_dim> space;
  /// In order of creation: arguments stand before their users.
  std::vector<ir_node> nodes;
  std::vector<ir_load> loads;
  std::vector<ir_output> outputs;
  /// Launch-plan conditions under which the index maps hold, beyond what the traced sizes showed.
  std::vector<std::string> conditions;
};

/// Builds nodes, each different one once, and folds what is known.
class ir_builder {
public:
  explicit ir_builder(fused_kernel& kernel) : kernel_(kernel) {}

  /// From here on sums are written with the factors that do not change along the row outside:
  /// sum(a * r) as sum(a) * r. One rounding differs, and sums no longer wait for each other.
  void take_factors_out() { takes_factors_out_ = true; }

  int constant(double number);
  int scalar(int input);
  int row_length();
  int given();
  int load(ir_load what);
  int reduce(reduction_kind kind, int body);
  /// Any operator with one to three arguments. Rounding what already has that precision is left
  /// out.
  int apply(ir_op op, int a, int b = -1, int c = -1);

private:
  using key = std::tuple<ir_op, std::array<int, 3>, uint64_t, int, int, reduction_kind>;

  int add(const ir_node& node);
  /// Appends the factors of a product to those that change along the row and those that do not.
  void split_product(int node, const std::vector<ir_level>& levels, std::vector<int>& changing,
    std::vector<int>& fixed) const;

  fused_kernel& kernel_;
  std::map<key, int> known_;
  bool takes_factors_out_ = false;
};

/// True for what takes many instructions: exponentials, logarithms, activations built of them.
bool is_transcendental(ir_op op);

/// How often each node changes; same order as `nodes`.
std::vector<ir_level> levels_of(const fused_kernel& kernel);

/// The nodes that `roots` need, themselves included, in order. A reduction is needed, its body is
/// not.
std::vector<int> needed_nodes(const fused_kernel& kernel, const std::vector<int>& roots);

/// For each node whether the outputs need it, bodies of reductions included.
std::vector<bool> reachable_nodes(const fused_kernel& kernel);

/// Floating-point operations of one element of the space: an addition, a product or a comparison
/// counts 1, a division or a root 4, a transcendental 8. Work of one row only is spread over
/// nothing: it is not counted.
uint64_t flops_per_element(const fused_kernel& kernel);

/// "add", "round_bf16": for messages and tests.
std::string to_string(ir_op op);

} // namespace gristmill
