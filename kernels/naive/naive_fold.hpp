#pragma once

#include "kernels/naive/naive_call.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// Walks over the elements of a tensor that one element of a reduction's result stands for. The
/// lanes of the writer share the walk and all know its result.
class naive_fold {
public:
  using element = std::function<std::string(const naive_index& at)>;

  /// Over `dims` (in order, none for all) of tensor `from`, at an index of the result, which has
  /// those dimensions either as 1 or not at all.
  naive_fold(const naive_call& call, int64_t from, std::vector<size_t> dims,
    const naive_index& result_index);

  /// The same with the index of the kept dimensions given as one of `from`; entries of `dims` do
  /// not matter.
  static naive_fold at(
    const naive_call& call, int64_t from, std::vector<size_t> dims, naive_index index);

  int64_t from() const { return from_; }
  /// Number of elements, as C++ text.
  std::string count() const;

  /// Sum of what `body` gives for each element; the name of a variable of that type.
  std::string sum(const std::string& type, const element& body);
  /// The same with another operation: "{0} * {1}" for a product. Types: 4 or 8 bytes.
  std::string combined(const std::string& type, const std::string& neutral, const element& body,
    std::string_view operation);
  /// Names of the largest or smallest value, and of its row-major place among the elements.
  std::pair<std::string, std::string> extreme(
    const std::string& type, bool is_max, const element& body);

private:
  explicit naive_fold(const naive_call& call) : call_(call) {}
  void set_space();
  /// Opens the loop; returns index and number of the element.
  std::pair<naive_index, std::string> walk();

  const naive_call& call_;
  int64_t from_ = 0;
  std::vector<size_t> dims_;
  /// An index of `from_` with empty entries at `dims_`.
  naive_index outer_;
  std::vector<std::string> sizes_;
};

/// max or min of two tensors.
std::string formula_extreme(const naive_call& call, const naive_index& index);

} // namespace gristmill
