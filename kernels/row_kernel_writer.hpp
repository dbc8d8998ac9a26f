#pragma once

#include "kernels/addressing.hpp"
#include "kernels/expression_writer.hpp"
#include "kernels/kernel_ir.hpp"
#include "kernels/kernel_signature.hpp"
#include "kernels/row_passes.hpp"
#include "protocol/definition.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Plan conditions under which the columns of a row can be read in vectors of that width.
std::vector<std::string> row_vector_conditions(
  const fused_kernel& kernel, const definition& def, int width);

/// Whether a row of that load lies in memory as one piece.
bool has_contiguous_rows(const ir_load& load, const fused_kernel& kernel, const definition& def);

/// One load of a kernel over rows.
struct row_load {
  tensor_access access;
  /// Its neighbours along the row do not lie side by side.
  bool is_gather = false;
  /// Names: the parameter, and what holds the row's number or its vectors.
  std::string tensor;
  std::string local;
  /// Text of the stride between columns, for a gather.
  std::string stride;
};

/// What the kernels of `row_template.hpp` and `sweep_template.hpp` write alike: names, addresses,
/// and the statements before and behind a walk over a row. A derived class holds the rows, writes
/// the walks and the plan. The statements know `row`, `lane` (a thread among those of the row) and
/// VEC (elements of a vector); `acc<node>[VEC]` are a thread's parts of a reduction, `r<node>` is
/// its result. Loads are named by their index in `fused_kernel::loads`.
class row_kernel_writer {
protected:
  /// With `reuses`, a later pass may take transcendental values from an earlier one; `fast` is for
  /// approximate arithmetic.
  row_kernel_writer(const fused_kernel& kernel, const definition& def, std::vector<row_pass> passes,
    bool reuses, bool fast);

  std::string_view type_of(size_t load) const { return element_type(kernel_.loads[load].type); }
  std::string_view exponential() const { return fast_ ? "__expf" : "expf"; }
  /// Which of `reduction_operators` a reduction takes.
  static std::string_view operator_of(reduction_kind kind);

  /// Access and names of that load; the names are new with each call.
  void fill(row_load& out, size_t load);
  /// From here on the stride of a gather is known, as a parameter.
  void add_stride(row_load& load);

  /// The text of each group's index for the row in variable `row`; adds to `text` the statements
  /// that take it apart, whose variables begin with `prefix`.
  std::vector<std::string> row_indices(
    const std::string& row, const std::string& prefix, std::string& text);
  /// Index of the load's element in the first column of a row.
  std::string place_of(
    const row_load& load, const std::string& row, const std::vector<std::string>& indices);
  /// `name` points to that place of a load's tensor.
  std::string pointer_line(size_t load, const std::string& name, const std::string& tensor,
    const std::string& place) const;
  /// Reads what does not change along the row, and defines its nodes.
  std::string read_number(size_t load, const row_load& from, const std::string& place);
  /// Reads a vector of a gather at `column` of the row that `row` points to.
  static std::string gather(
    const row_load& load, const std::string& vector, const std::string& row);

  /// Pointers to the row of each output that has an element a column of it.
  std::string output_pointers() const;
  void define_row_length();
  /// What stands before a walk over the row, whatever the walk is.
  std::string begin_pass(const row_pass& pass, const std::vector<int>& roots);
  /// Registers for values that a later pass needs again, `count` vectors of each.
  std::string kept_arrays(std::string_view count) const;
  void define_result(int node);
  /// One number a row, behind all passes.
  std::string row_outputs();

  const fused_kernel& kernel_;
  const definition& def_;
  bool fast_;
  kernel_signature signature_;
  std::vector<dim_group> groups_;
  std::vector<row_pass> passes_;
  /// Values of elements that more than one pass needs.
  std::vector<int> reused_;
  /// Those of them that an earlier pass has left in registers.
  std::set<int> left_behind_;
  expression_writer expressions_;
  /// Number of rows and columns in the plan.
  std::string rows_text_;
  std::string cols_text_;
  /// The same in the source, once the derived class has made them parameters.
  std::string rows_;
  std::string cols_;
};

} // namespace gristmill
