#pragma once

#include "kernels/kernel_ir.hpp"
#include "protocol/definition.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gristmill {

/// Neighbouring dimensions of the space that every tensor uses together or not at all, so that one
/// index serves for them.
struct dim_group {
  size_t first = 0;
  size_t last = 0;
  /// Its number of elements as a launch-plan expression.
  std::string size;
};

/// How a load or an output finds its element: base + sum over the groups of index times stride.
struct tensor_access {
  /// Launch-plan expressions, one a group; empty where the group does not matter.
  std::vector<std::string> strides;
  /// Launch-plan expression in elements; empty for 0.
  std::string base;
  /// The elements lie as those of the space do, so that the flat index serves.
  bool is_identity = false;

  /// Neighbours of the innermost group lie side by side.
  bool is_contiguous() const { return !strides.empty() && strides.back() == "1"; }
  /// The innermost group does not matter.
  bool is_uniform() const { return strides.empty() || strides.back().empty(); }
};

/// The fewest groups over the dimensions [first, last) of the space.
std::vector<dim_group> group_dims(const fused_kernel& kernel, size_t first, size_t last);

/// Access of a load through those groups, which cover the whole space.
tensor_access access_of(const ir_load& load, const fused_kernel& kernel, const definition& def,
  const std::vector<dim_group>& groups);

/// Launch-plan conditions under which a contiguous access may be read in vectors of `width`
/// elements: every row of the innermost group begins at a multiple of it. None for an identity,
/// whose rows are as long as the space's.
std::vector<std::string> alignment_conditions(
  const tensor_access& access, const std::string& width);

} // namespace gristmill
