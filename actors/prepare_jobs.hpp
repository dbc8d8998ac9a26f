#pragma once

#include "actors/run_context.hpp"
#include "messages/child.hpp"
#include "messages/prepare.hpp"
#include "protocol/job.hpp"

#include <cstdint>
#include <string>

namespace gristmill {

/// What the oracle child of a problem has to make: inputs and references of every set of the pool
/// (`pool_cases`), pattern files for the clock where they are needed, and the operator graph where
/// none is shipped.
///
/// `not_found` with "blob missing: ..." for a safetensors file that is nowhere, which is nobody's
/// failure but the data set's; `unsupported` for a problem whose reference or entry point needs
/// torch where there is no interpreter; `invalid_input` for axes that do not resolve and inputs
/// that contradict the definition.
result<prepare_job> build_prepare_job(const run_context& context, const problem& target);

/// The same for a draw: the cases of `draw_cases` for this candidate, and no graph. Errors also
/// those of `resolve_candidate`.
result<prepare_job> build_draw_job(const run_context& context, const problem& target,
  const std::string& draw, const candidate_ref& candidate);

/// The folders that the job writes to; of the pool for an empty draw. Errors: `io_failed`.
result<void> make_data_folders(
  const run_context& context, const problem& target, const std::string& draw = {});

/// Bytes of all outputs at these axes. An output whose shape does not resolve counts nothing.
uint64_t output_bytes(const definition& def, const axis_values& axes);

/// What the problem is once its child has answered: floors from the graph, or from the bounds
/// table. The first workload whose inputs or reference failed fails the problem. Numbers of a
/// custom entry point are stored for the runs.
result<prepared_problem> finish_prepare(const run_context& context, const problem& target,
  const child_result& ended, const std::string& nonce, const std::string& job_folder);

/// What of a draw came to be: `sets` of each workload counts its cases. A case whose reference
/// raises is left out, which `reason` tells; `not_checked` when a workload has none. Errors:
/// `child_failed` for what is not the reference's.
result<prepared_problem> finish_draw(const run_context& context, const problem& target,
  const std::string& draw, const candidate_ref& candidate, const child_result& ended,
  const std::string& nonce);

} // namespace gristmill
