#pragma once

#include "actors/candidate.hpp"
#include "actors/child_job.hpp"
#include "actors/run_context.hpp"
#include "messages/child.hpp"
#include "messages/measure.hpp"
#include "messages/verdict.hpp"
#include "protocol/job.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace gristmill {

/// What the runner has to do for a measurement on `device` ("mock:h200", "cuda:0"): every workload
/// that it asks for in full on its cases, and at true size for the clock. A screening has the cases
/// of `pool_cases`, a promotion those of its draw, and the incumbent beside it. On a real device
/// calls are timed on the cases themselves where these have the workload's own shapes. Outputs go
/// to the job's folder, under `output_file`. Errors: those of `resolve_candidate`; `invalid_input`
/// when the compiled units are not those that the plan needs, and for a workload that the problem
/// has not; `not_found` for an input that the oracle has not made or code that is gone.
result<run_job> build_run_job(
  const run_context& context, const measure_request& request, const std::string& device);

/// The runner with that job, ready to be started. Errors: those of `build_run_job`; `io_failed`.
result<child_job> make_runner_child(const run_context& context, const measure_request& request,
  const std::string& device, std::chrono::nanoseconds deadline);

/// What a runner's end means, one element for each workload that was asked for, in the problem's
/// order. A runner that broke off, or whose answer is not plausible (nonce, number and names of
/// workloads, statuses that only a judge may give, a time of 0), has measured nothing: every
/// workload is `infrastructure` and `failure_text` says why.
measurement read_run_result(const run_context& context, const measure_request& request,
  std::string_view nonce, const child_result& ended);

/// Which outputs the judge has to compare: those of the workloads that ran to their end. Errors:
/// `not_found` for an unknown problem or workload, `invalid_input` for a measurement without a
/// folder.
result<judge_job> build_judge_job(const run_context& context, const judge_request& request);

/// The judge's counts. Errors: `child_failed`.
result<evaluation> read_judge_result(const child_result& ended, std::string_view nonce);

inline constexpr const char* first_set_label = "set 0";

/// File of an output of a case in the folder of a measurement. Names of tensors may be any text, so
/// it is a hash.
std::string output_file(
  const std::string& uuid, const std::string& tensor, const std::string& label = first_set_label);

} // namespace gristmill
