#pragma once

#include "actors/run_context.hpp"
#include "messages/child.hpp"
#include "messages/prepare.hpp"
#include "protocol/job.hpp"

#include <string>

namespace gristmill {

/// What the oracle child of a problem has to make: inputs of the correctness runs and their
/// references, pattern files for the clock, and the operator graph where none is shipped.
/// `unsupported` for inputs that this build cannot make (custom entry point, safetensors) and for a
/// problem whose reference needs torch where there is no interpreter; `invalid_input` for axes that
/// do not resolve.
result<prepare_job> build_prepare_job(const run_context& context, const problem& target);

/// The folders that the job writes to. Errors: `io_failed`.
result<void> make_data_folders(const run_context& context, const problem& target);

/// What the problem is once its child has answered: floors from the graph, or from the bounds
/// table. The first workload whose reference failed fails the problem.
result<prepared_problem> finish_prepare(const run_context& context, const problem& target,
  const child_result& ended, const std::string& nonce, const std::string& job_folder);

} // namespace gristmill
