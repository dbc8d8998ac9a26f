#pragma once

#include "messages/result.hpp"
#include "protocol/child_program.hpp"

namespace gristmill {

/// A job with an incumbent to compare with (`run_job::against`): first all cases of the candidate
/// in a process of their own, then blocks of both sides, each in a process of its own, one after
/// the other in an order that is drawn (`block_order`). No process ever has both sides, and no two
/// have a context at once.
///
/// Answers as a runner does, for the candidate: its samples are those of all its blocks. What the
/// candidate's processes do wrong is the candidate's; where a process of the incumbent fails,
/// nothing can be compared, and all workloads are `infrastructure`. Fails where a helper cannot be
/// started or a folder not be made.
result<void> run_comparison(child_context& context);

} // namespace gristmill
