#pragma once

#include "kernels/naive/naive_call.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One operator of the naive family.
struct naive_operator {
  /// An element of result `call.output` at an index, as an expression of the result's register type
  /// before it is rounded to the dtype. May add lines.
  using element_code = std::string (*)(const naive_call& call, const naive_index& index);

  element_code element = nullptr;
  /// A warp works on one element together, because a reduction makes it.
  bool is_shared = false;
};

using naive_operator_table = std::map<std::string, naive_operator, std::less<>>;

/// The operator of that name (without the underscore of its in-place form), or null.
const naive_operator* find_naive_operator(std::string_view op);
const naive_operator_table& naive_operators();

/// Each adds its group to the table.
void add_naive_pointwise(naive_operator_table& table);
void add_naive_pointwise_backward(naive_operator_table& table);
void add_naive_creation(naive_operator_table& table);
void add_naive_movement(naive_operator_table& table);
void add_naive_scatters(naive_operator_table& table);
void add_naive_reductions(naive_operator_table& table);
void add_naive_losses(naive_operator_table& table);
void add_naive_products(naive_operator_table& table);
void add_naive_windows(naive_operator_table& table);

/// An operator that is written a row at a time.
struct naive_row_operator {
  /// The dimensions of the results that one row runs over.
  std::vector<size_t> (*dims)(const naive_call& call) = nullptr;
  /// Statements at the row, once: `row` has an entry for each dimension; those of `dims` are empty.
  /// Returns names for `element`.
  std::vector<std::string> (*prologue)(const naive_call& call, const naive_index& row) = nullptr;
  /// An element of the row, before rounding.
  std::string (*element)(const naive_call& call, const std::vector<std::string>& names,
    const naive_index& index) = nullptr;
};

using naive_row_table = std::map<std::string, naive_row_operator, std::less<>>;

/// Softmax, normalisations and the like: null for other operators.
const naive_row_operator* find_naive_row_operator(std::string_view op);
const naive_row_table& naive_row_operators();
void add_naive_normalisation(naive_row_table& table);

/// An operator that places results where it likes: sorts and scans.
struct naive_scan_operator {
  /// Dimension that it works along, of its first argument.
  size_t (*dim)(const naive_call& call) = nullptr;
  /// One thread an element instead of one thread a row.
  bool is_by_element = false;
  /// Statements; `index` has an entry for each dimension, the one of `dim` is empty for a thread a
  /// row. Stores into `outputs`, one pointer for each result, "" where nobody wants it.
  void (*write)(const naive_call& call, const naive_index& index,
    const std::vector<std::string>& outputs) = nullptr;
};

using naive_scan_table = std::map<std::string, naive_scan_operator, std::less<>>;

const naive_scan_operator* find_naive_scan_operator(std::string_view op);
const naive_scan_table& naive_scan_operators();
void add_naive_scans(naive_scan_table& table);

} // namespace gristmill
