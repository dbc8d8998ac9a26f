#pragma once

#include "messages/result.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <string>

namespace gristmill {

/// The frozen plain kernel whose time is T_b.
struct baseline_kernel {
  std::string source;
  std::string plan;
  /// Name and version of the generator; stands in every result.
  std::string version = "plain/1";
};

/// Writes the plain kernel of a graph: one thread an element with scalar loads, or one warp a row
/// that reads the row from memory once a pass. The texts depend on graph and definition alone and
/// never change with the templates (docs/decisions/0004-baseline.md). `unsupported` as for `fuse`.
result<baseline_kernel> plain_baseline(const op_graph& graph, const definition& def);

/// The same for every graph whose operators have a kernel: where `plain/1` writes one kernel, that
/// kernel; else `plain/2`, a kernel for each operator, as eager execution launches them
/// (docs/decisions/0010-stages.md). Of the workloads only the question whether scratch must be
/// shared depends.
result<baseline_kernel> plain_baseline(const problem& target, const op_graph& graph);

} // namespace gristmill
