#pragma once

#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gristmill::test {

/// A problem with its graph, written down operator by operator. Shapes are expressions over the
/// axes ("B * S", "8"), which both traces are computed from.
class small_program {
public:
  struct traced_axis {
    std::string name;
    int64_t first = 0;
    int64_t again = 0;
    /// An expression axis when not empty; its traced sizes follow.
    std::string expression = {};
    bool is_constant = false;
  };

  explicit small_program(const std::vector<traced_axis>& axes);

  /// Each gives the id of its value.
  int64_t input(const std::string& name, const std::vector<std::string>& shape,
    const std::string& type = "float32");
  int64_t constant(double number);
  /// One result of the same type as the first operand, unless a type is given.
  int64_t op(const std::string& name, std::vector<graph_operand> arguments,
    const std::vector<std::string>& shape, const std::string& type = {});
  /// Several results.
  std::vector<int64_t> ops(const std::string& name, std::vector<graph_operand> arguments,
    const std::vector<std::vector<std::string>>& shapes, const std::string& type = "float32");
  void scalar(const std::string& name, double value);
  void output(const std::string& name, int64_t id, const std::vector<std::string>& labels);
  void workload_at(const axis_values& axes);
  /// Without the second trace, as older graphs are.
  void forget_second_trace();
  graph_node& last_node() { return graph.nodes.back(); }

  problem target;
  op_graph graph;

private:
  std::vector<int64_t> sizes(const std::vector<std::string>& shape, const axis_values& axes) const;
  int64_t add_value(const std::vector<std::string>& shape, const std::string& type);
};

graph_operand value(int64_t id);
graph_operand values(std::vector<int64_t> ids);
graph_operand integer(int64_t number, bool varies = false);
graph_operand integers(std::vector<int64_t> numbers);
graph_operand number(double number);
graph_operand flag(bool is_set);
graph_operand none();
graph_operand scalar_operand(const std::string& name);

} // namespace gristmill::test
