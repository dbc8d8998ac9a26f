#pragma once

#include "actors/run_context.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/job.hpp"
#include "protocol/problem.hpp"
#include "protocol/trace_plan.hpp"
#include "tensors/philox.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Which of a workload's two sets of inputs is meant.
enum class input_set : uint8_t { check = 0, clock };

/// Keys the values of an input: HMAC(run secret, definition, workload, set, tensor), contracts
/// section 3. `set` is "0" for the first correctness run, "clock", or another set's name.
tensor_key input_key(const run_context& context, const problem& target, const std::string& uuid,
  std::string_view set, const std::string& tensor);

/// The numbers among a workload's inputs that are known before the oracle ran: those that the
/// workload gives, and random ones, of which one element is drawn: the same for all sets, so that
/// every set is run by the same launches. Numbers of a custom entry point are left out.
/// `invalid_input` for a value that the declared type does not hold, or an input without a shape
/// that is to come from a file.
result<scalar_values> known_numbers(
  const run_context& context, const problem& target, const workload& work);

/// Inputs without a shape whose value the entry point returns.
std::vector<custom_number> custom_numbers(const problem& target, const workload& work);

/// Keeps what the entry point returned, for the runs: `calls` are those of the oracle's answer. The
/// second set is the first where there was one call. `invalid_input` for a number that is missing
/// or that the declared type does not hold; `io_failed`.
result<void> store_custom_numbers(const run_context& context, const problem& target,
  const workload& work, const std::vector<named_numbers>& calls);

/// Every number among a workload's inputs, in order of the definition. As `known_numbers`;
/// `not_found` for numbers of an entry point that the oracle has not stored yet.
result<scalar_values> all_numbers(
  const run_context& context, const problem& target, const workload& work, input_set set);

} // namespace gristmill
