#pragma once

#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"
#include "protocol/resolve.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A number of elements as a product: a factor that is known and axes that a workload gives. The
/// same product has one form only, so that `==` means the same size for every workload.
struct size_product {
  int64_t number = 1;
  /// Sorted; an axis stands as often as it is a factor.
  std::vector<std::string> axes;

  bool is(int64_t value) const { return axes.empty() && number == value; }
  bool is_known() const { return axes.empty(); }
  /// Launch-plan expression, such as "128 * axis.B".
  std::string text() const;
  /// Its value at a workload's axes.
  int64_t at(const axis_values& values) const;

  friend bool operator==(const size_product&, const size_product&) = default;
};

/// Throws `no_template` where the known factor leaves 64 bits.
size_product operator*(const size_product& a, const size_product& b);

/// a / b where the factors of b are factors of a.
std::optional<size_product> divided(const size_product& a, const size_product& b);

/// The sizes in a graph and its definition as products.
class size_names {
public:
  size_names(const problem& target, const op_graph& graph);

  /// Of a dimension's label in the definition: an axis or digits. Products of other axes come
  /// apart.
  size_product of_label(std::string_view label) const;
  /// Of a size as it was traced; `again` is the size in the second trace, or 0 without one. Nothing
  /// when no axis explains it or several do.
  std::optional<size_product> of_traced(int64_t traced, int64_t again) const;

private:
  size_product of_axis(const axis& from, int depth) const;

  const definition& def_;
  const op_graph& graph_;
  axis_values example_;
};

} // namespace gristmill
