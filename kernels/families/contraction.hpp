#pragma once

#include "kernels/families/size_product.hpp"
#include "kernels/kernel_ir.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace gristmill {

/// The four index groups of a contraction: result[batch, row, column] = sum over depth of
/// left[batch, row, depth] * right[batch, depth, column].
enum class index_group : uint8_t { batch = 0, row, column, depth };
constexpr size_t index_groups = 4;

/// A part of a group's index: the group's number is taken apart into its segments like a number
/// into digits, the outermost first, and each moves by its own stride.
struct index_segment {
  size_product size;
  /// In elements; 0 where the tensor does not depend on it.
  size_product stride;

  friend bool operator==(const index_segment&, const index_segment&) = default;
};

/// Where an element lies: base + the sum over groups and segments of digit times stride. As few
/// segments as the strides allow; no segment for a group that does not matter.
struct index_layout {
  std::array<std::vector<index_segment>, index_groups> groups;
  /// Terms of the base in elements, all positive.
  std::vector<size_product> base;
  /// What the base is less by: the padding of a convolution.
  std::vector<size_product> before;

  const std::vector<index_segment>& of(index_group group) const {
    return groups[static_cast<size_t>(group)];
  }
  /// Neighbours in that group lie side by side.
  bool is_contiguous(index_group group) const {
    return !of(group).empty() && of(group).back().stride.is(1);
  }
};

/// An index along one dimension of a padded tensor: outside of [0, length) there are zeros.
struct index_window {
  index_layout place;
  size_product length;
};

/// One of the two operands: an expression over loads, mostly one load alone.
struct contraction_operand {
  /// Node of `contraction::values`.
  int node = 0;
  std::vector<index_window> windows;
  /// The node is this load and nothing else (not even a conversion that changes a number); -1 for
  /// an expression.
  int plain_load = -1;
  /// The type that holds the operand's numbers exactly: float32, bfloat16 or float16.
  dtype type = dtype::float32;
};

/// A sub-graph as one contraction with a pointwise epilogue.
struct contraction {
  /// Loads and nodes of both operands and of the epilogue; `outputs` are the epilogue's. The space
  /// is empty: layouts say where loads lie.
  fused_kernel values;
  /// One for each load of `values`.
  std::vector<index_layout> layouts;
  /// One for each output of `values`.
  std::vector<index_layout> output_layouts;
  contraction_operand left;
  contraction_operand right;
  /// Of batch, rows, columns, depth.
  std::array<size_product, index_groups> sizes;
  /// Launch-plan conditions under which the layouts hold, beyond what labels say.
  std::vector<std::string> conditions;

  const size_product& size(index_group group) const { return sizes[static_cast<size_t>(group)]; }
};

/// What a reader of contractions takes as the core.
enum class contraction_kind : uint8_t { matrix_product, convolution };

/// Reads a sub-graph whose outputs are pointwise functions of one matrix product (mm, addmm, bmm,
/// baddbmm, mv, addmv, dot, linear) or of one convolution of one or two dimensions that is not
/// transposed. Operands may be views and pointwise expressions of inputs. Views, permutations and
/// broadcasts before and behind become index layouts.
///
/// `unsupported` with the reason in words for everything else; quickly when there is no such
/// operator at all.
result<contraction> read_contraction(
  const problem& target, const op_graph& graph, contraction_kind kind);

} // namespace gristmill
