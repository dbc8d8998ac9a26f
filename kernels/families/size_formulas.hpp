#pragma once

#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// A size as it was in the two traces of a graph; equal numbers where there was one trace only.
struct size_pair {
  int64_t first = 1;
  int64_t second = 1;

  friend auto operator<=>(const size_pair&, const size_pair&) = default;
};

size_pair operator*(size_pair a, size_pair b);
size_pair operator+(size_pair a, size_pair b);
size_pair operator-(size_pair a, size_pair b);

/// The sizes of a value's dimensions in both traces.
std::vector<size_pair> traced_shape(const graph_value& value);

/// Leads traced sizes back to the axes of a problem.
class size_formulas {
public:
  /// `unsupported` when a workload gives a constant axis another value, so that a traced number
  /// could mean anything.
  static result<size_formulas> make(const problem& target, const op_graph& graph);

  /// A launch-plan expression that had this value in both traces: digits alone for a constant,
  /// `axis.M`, or a formula in brackets. That of a dimension of the graph follows the operators
  /// (`infer_shapes`); others are searched for. Nothing when no simple formula explains both
  /// numbers, or when several do.
  std::optional<std::string> text(size_pair size) const;

  /// The size in the first trace of a number that some argument holds, as an expression of one
  /// axis. Nothing when no single axis had that size.
  std::optional<std::string> axis_of(int64_t first) const;

  /// A number that an argument holds and that changed between the traces, as an expression that is
  /// a float: an axis, its root, its inverse or the inverse of its root.
  /// `again` is the number in the second trace, where it is known.
  std::optional<std::string> number_of(double number, std::optional<double> again) const;

private:
  struct known_axis {
    std::string text;
    size_pair size;
    bool is_constant = false;
  };
  std::optional<std::string> searched(size_pair size) const;
  /// Formulas of the graph's own dimensions; empty text where two of them are different.
  std::map<size_pair, std::string> known_;
  std::vector<known_axis> axes_;
  bool has_second_ = false;
};

} // namespace gristmill
