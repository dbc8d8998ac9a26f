#pragma once

#include "actors/run_context.hpp"
#include "messages/child.hpp"
#include "messages/prepare.hpp"
#include "protocol/job.hpp"

#include <string>

namespace gristmill {

/// What the oracle child of a problem has to make: inputs of the correctness runs and their
/// references, pattern files for the clock, and the operator graph where none is shipped.
///
/// `held_out` draws from the held-out distributions and with other keys. `not_found` with "blob
/// missing: ..." for a safetensors file that is nowhere, which is nobody's failure but the data
/// set's; `unsupported` for a problem whose reference or entry point needs torch where there is no
/// interpreter; `invalid_input` for axes that do not resolve and inputs that contradict the
/// definition.
result<prepare_job> build_prepare_job(
  const run_context& context, const problem& target, bool held_out = false);

/// The folders that the job writes to. Errors: `io_failed`.
result<void> make_data_folders(const run_context& context, const problem& target);

/// What the problem is once its child has answered: floors from the graph, or from the bounds
/// table. The first workload whose inputs or reference failed fails the problem. Numbers of a
/// custom entry point are stored for the runs.
result<prepared_problem> finish_prepare(const run_context& context, const problem& target,
  const child_result& ended, const std::string& nonce, const std::string& job_folder);

} // namespace gristmill
