#pragma once

#include "kernels/template_point.hpp"
#include "messages/result.hpp"
#include "protocol/op_graph.hpp"
#include "protocol/problem.hpp"

#include <functional>

namespace gristmill {

/// Writes the kernel of one stage, or says that it has none.
using stage_writer = std::function<result<generated_kernel>(const problem&, const op_graph&)>;

/// A program with a kernel for each operator, as eager execution would launch them: what `frozen`
/// writes where it writes something, else the first point of the family that is merely correct.
/// Errors: `unsupported`, naming the operator; `refused` beyond a limit of launch plans.
result<generated_kernel> plain_program(
  const problem& target, const op_graph& graph, const stage_writer& frozen);

} // namespace gristmill
