#pragma once

#include "kernels/families/contraction.hpp"
#include "protocol/definition.hpp"
#include "protocol/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// When neighbours may be moved as vectors: every one of these numbers is a multiple of the width.
struct vector_rule {
  /// Widest vector that the types and layouts allow; 1 for none.
  int widest = 1;
  std::vector<size_product> multiples;

  bool fits(int width, const axis_values& axes) const;
  /// For every shape.
  bool always_fits(int width) const;
  /// Launch-plan conditions; empty where it always fits.
  std::vector<std::string> conditions(int width) const;
};

/// The device code that knows the tensors of one contraction: the struct `task` with the kernel's
/// arguments, which loads elements of the operands and finishes elements of the result. All kernels
/// of the family are templates over what it offers.
///
/// Names in the source: `in_…` and `out_…` for tensors, `s_…` for scalars, `n…` for sizes.
class gemm_task {
public:
  /// `is_wide`: 64-bit indices. `has_partial`: there is scratch for partial sums. `many_is_left`:
  /// where one operand has few rows (or columns) and the other many, the left one has the many.
  gemm_task(const contraction& what, const definition& def, bool is_wide, bool has_partial,
    bool many_is_left);

  /// Includes, helper functions and the struct.
  std::string source() const;
  /// "const float* in_x, float* out_y, int64_t n0" and the same as arguments.
  std::string parameters() const;
  std::string names() const;
  /// What the plan passes.
  std::vector<std::string> plan_arguments() const;

  const vector_rule& left_rule() const { return left_.rule; }
  const vector_rule& right_rule() const { return right_.rule; }
  const vector_rule& output_rule() const { return output_rule_; }
  bool left_along_depth() const { return left_.along_depth; }
  bool right_along_depth() const { return right_.along_depth; }
  /// Both operands hold 16-bit numbers of one type, so that tensor cores compute exactly with them.
  bool can_use_tensor_cores() const;

private:
  struct side {
    const contraction_operand* operand = nullptr;
    std::string name;
    index_group outer = index_group::row;
    /// Vectors run along the depth, not along rows or columns.
    bool along_depth = true;
    vector_rule rule;
    /// Loads in the order of their places.
    std::vector<int> loads;
  };

  side read_side(const contraction_operand& operand, std::string name, index_group outer) const;
  vector_rule rule_of(const std::vector<int>& loads, index_group along) const;
  void add_multiples(
    const index_layout& layout, index_group along, std::vector<size_product>& multiples) const;
  std::string side_code(const side& which);
  std::string finish_code();
  static std::string orientation_code(bool many_is_left);
  std::string size_code(const size_product& size);
  std::string digits(const std::vector<index_segment>& segments, const std::string& index);
  std::string part(const index_layout& layout, index_group group, const std::string& index);
  std::string base(const index_layout& layout);
  std::string load_text(size_t load, const std::string& raw) const;
  std::string input_of(size_t load) const;

  const contraction& what_;
  const definition& def_;
  bool is_wide_;
  bool has_partial_;
  std::vector<std::string> identifiers_;
  std::vector<std::string> scalar_names_;
  side left_;
  side right_;
  vector_rule output_rule_;
  /// Sizes that are parameters: plan expression and name.
  std::vector<std::pair<std::string, std::string>> sizes_;
  std::string body_;
};

} // namespace gristmill
