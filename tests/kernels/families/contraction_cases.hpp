#pragma once

#include "kernels/stage.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"
#include "tests/kernels/mock_run.hpp"

#include <string>
#include <vector>

namespace gristmill::test {

/// A case of tests/corpus/contractions: a graph, and for each workload inputs and what torch gives.
struct contraction_case {
  std::string name;
  stage_reader read = nullptr;
  problem target;
  op_graph graph;
  std::vector<std::vector<tensor>> inputs;
  std::vector<std::vector<tensor>> outputs;
};

/// All of them, or the one that the environment names in GRISTMILL_CASE; none, said aloud, where
/// the environment does not say where the sources are.
std::vector<contraction_case> contraction_cases();

/// Largest error in units of what the problems allow: 1.25e-5 for float32, 1.25 % for 16 bits.
double worst_error(const tensor& got, const tensor& wanted, dtype type);

/// Compiles a point, runs it at a workload and checks every output.
void check_point(mock_bench& bench, const contraction_case& one, const stage_space& space,
  size_t point, size_t work);

} // namespace gristmill::test
