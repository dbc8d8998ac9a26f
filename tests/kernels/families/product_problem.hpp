#pragma once

#include "kernels/stage.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::test {

struct product_sizes {
  int64_t rows = 1;
  int64_t depth = 1;
  int64_t columns = 1;
};

/// A product of two matrices, each of which lies transposed or not, of inputs and an output of one
/// dtype; a workload for each of `sizes`.
struct product_problem {
  problem target;
  op_graph graph;

  product_problem(const std::string& dtype, bool left_transposed, bool right_transposed,
    const std::vector<product_sizes>& sizes);
};

/// A problem over x [M, K], w [K, N] and y [M, N], float32, with nodes that read values 0 and 1 and
/// end in value 2; ids 3 to 9 are float32 of shape [M, N].
struct node_problem {
  problem target;
  op_graph graph;

  explicit node_problem(const std::string& nodes_json);
};

} // namespace gristmill::test
