#pragma once

#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// An integer that may follow the axes.
struct naive_size {
  /// Launch-plan expression, such as "axis.M" or "3"; brackets where it is more than one term.
  std::string plan;
  /// What it is in the first trace.
  int64_t traced = 0;

  friend bool operator==(const naive_size&, const naive_size&) = default;
};

naive_size operator+(const naive_size& a, const naive_size& b);
naive_size operator-(const naive_size& a, const naive_size& b);
naive_size operator*(const naive_size& a, const naive_size& b);

/// A number that is the same for every workload.
naive_size naive_constant(int64_t number);

/// Product of all; 1 for none.
naive_size naive_product(const std::vector<naive_size>& factors);

/// The sizes of a graph's values as expressions over the axes: declared shapes as they stand,
/// shapes behind views from the views, and what is left from the traced numbers, which both traces
/// must agree on where there are two. Every method throws `no_template`.
class naive_sizes {
public:
  naive_sizes(const op_graph& graph, const definition& def);

  const std::vector<naive_size>& shape(int64_t id);

  /// A traced integer argument. `varies` as in `graph_operand`.
  naive_size integer(std::string_view op, int64_t number, bool varies) const;

  /// A traced floating-point argument that follows the shape, as an expression: roots and
  /// reciprocals of sizes.
  std::string number(std::string_view op, double number) const;

private:
  std::vector<naive_size> derived(const graph_value& what);
  naive_size known(int64_t traced, int64_t again) const;

  const op_graph& graph_;
  const definition& def_;
  std::map<int64_t, std::vector<naive_size>> shapes_;
  std::map<int64_t, const graph_node*> origins_;
};

} // namespace gristmill
