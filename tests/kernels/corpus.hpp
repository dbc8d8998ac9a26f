#pragma once

#include "kernels/builtin.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <string>
#include <vector>

namespace gristmill::test {

/// A problem with the graph of its reference.
struct graph_problem {
  problem target;
  op_graph graph;
};

/// The built-in problems that a run takes by default: each is one fused kernel.
std::vector<graph_problem> builtin_corpus();

/// All built-in problems.
std::vector<graph_problem> all_builtins();

/// The built-in problem of that name; the test ends where there is none.
graph_problem builtin_graph(const std::string& name);

/// The problems of the shared folder that have a graph in tests/corpus/graphs; empty, with a loud
/// message, when the environment does not say where the folder is.
std::vector<graph_problem> shared_corpus();

/// Both.
std::vector<graph_problem> whole_corpus();

/// One problem from texts; the test ends when they do not parse.
graph_problem make_problem(const std::string& definition_text, const std::string& workload_text,
  const std::string& graph_text);

/// A problem over one input `x` and the output `y`, both float32 of shape [M, N], with nodes that
/// read value 0 and end in value 1; ids 2 to 9 are float32 of that shape too, 10 and 11 of shape
/// [M, 1].
graph_problem map_problem(const std::string& nodes_json);

/// The same problem with every axis, input and output called something else.
graph_problem renamed(const graph_problem& from);

} // namespace gristmill::test
