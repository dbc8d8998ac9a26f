#pragma once

#include "kernels/kernel_ir.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A float as C++ text that reads back as the same float.
std::string float_literal(double number);

/// How a kernel sees the elements of a type: "float", "__nv_bfloat16", "__half", "bool".
std::string_view element_type(dtype type);

/// Bytes of one element of a type that templates handle.
int element_bytes(dtype type);

/// Writes the arithmetic of a kernel as C++ statements. Copies are cheap, so that an inner scope
/// starts with the names of the outer one and forgets its own at the end.
class expression_writer {
public:
  /// `scalar_names` are the parameters that hold the null-shape inputs, by index of the input.
  expression_writer(
    const fused_kernel& kernel, std::vector<std::string> scalar_names, bool uses_fast_math);

  /// From here on the node's value is that text.
  void define(int node, std::string text);
  bool is_defined(int node) const { return names_.contains(node); }
  /// What the roots need and what is not defined yet, leaves included, in order.
  std::vector<int> undefined_nodes(const std::vector<int>& roots) const;
  /// The text of a node that is defined, a constant or a scalar.
  std::string text_of(int node) const;

  /// Statements that define everything the roots need and that is not defined yet, up to `level`.
  /// Loads and reductions must be defined before they are needed.
  std::vector<std::string> statements(const std::vector<int>& roots, ir_level level);
  /// Statements that prepare 1 / d for every divisor d that does not change along the row, defined
  /// already, so that elements are multiplied instead of divided: one rounding more, many
  /// instructions less.
  std::vector<std::string> reciprocals(const std::vector<int>& roots);
  /// The loads and reductions that the roots need and that are not defined yet.
  std::vector<int> undefined_leaves(const std::vector<int>& roots) const;

private:
  std::string operation(const ir_node& node) const;

  const fused_kernel* kernel_;
  std::vector<ir_level> levels_;
  std::vector<std::string> scalars_;
  std::map<int, std::string> names_;
  std::map<int, std::string> reciprocals_;
  bool fast_;
};

/// The device functions that a kernel's operators call, each with a comment; empty when none is
/// needed.
std::string helper_functions(const fused_kernel& kernel, bool uses_fast_math);

/// The include lines for the kernel's types.
std::string include_lines(const fused_kernel& kernel);

} // namespace gristmill
