#pragma once

#include "messages/result.hpp"
#include "protocol/problem.hpp"
#include "protocol/workload.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace gristmill {

/// True when the text is, byte for byte, the definition of a built-in problem. A folder that only
/// uses the name of one does not get our reference in place of its own.
bool has_native_reference(std::string_view definition_text);

/// Computes the outputs of a built-in problem on host memory, in the reference's steps: float32
/// with the roundings of the definition, double accumulators.
///
/// `axes` are resolved ones; inputs and outputs are the raw contiguous tensors in declared order.
/// `not_found` when there is no reference for that definition, `invalid_input` for a buffer of the
/// wrong size or a missing axis.
result<void> run_native_reference(std::string_view definition_text, const axis_values& axes,
  const std::vector<std::span<const std::byte>>& inputs,
  const std::vector<std::span<std::byte>>& outputs);

} // namespace gristmill
