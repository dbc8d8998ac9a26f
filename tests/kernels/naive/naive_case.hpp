#pragma once

#include "kernels/stage.hpp"
#include "tests/kernels/corpus.hpp"
#include "tests/kernels/mock_run.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gristmill::test {

/// Sizes of the axes M, N and K.
struct case_sizes {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

/// A problem of one operator. Tensors are written as "float32 M N": dtype, then axis names, digits
/// or names of `expressions`. Values are numbered: inputs first, then `middle`, then `outputs`.
struct naive_case {
  std::string nodes;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  /// What each output should hold, from the inputs.
  std::function<std::vector<tensor>(const std::vector<tensor>& in, const case_sizes& sizes)>
    expected;
  std::vector<std::string> middle = {};
  /// "P = M * 2": more axes.
  std::vector<std::string> expressions = {};
  /// Numbers drawn for the inputs are 0, 1, …, this - 1 instead of normal; by input, 0 for normal.
  std::vector<int> below = {};
};

/// The case as a problem: M, N, K are 5, 7, 3 in the first trace and 11, 13, 17 in the second, and
/// the workloads have `checked_sizes()`.
graph_problem problem_of(const naive_case& one);

/// Two shapes that no trace has; the second has dimensions of size 1.
std::vector<case_sizes> checked_sizes();

/// Runs the case at both shapes and compares every element.
void check_case(mock_bench& bench, const naive_case& one);

/// The space of a case that must be read.
stage_space_ptr space_of(const graph_problem& one);

/// A node as JSON; `inputs` is the inside of the list of arguments.
std::string node_json(const std::string& op, const std::string& inputs, const std::string& outputs,
  const std::string& attrs = "");

} // namespace gristmill::test
