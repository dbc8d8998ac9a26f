#pragma once

#include "messages/embedded_file.hpp"
#include "messages/result.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"
#include "protocol/definition.hpp"

#include <span>
#include <vector>

namespace gristmill {

/// `torch_oracle.py`.
std::span<const embedded_file> oracle_scripts();

/// Lets Python compute the references of all workloads (when the oracle is torch) and trace the
/// reference (when the job asks for it), in a helper process that dies with this one. Its inputs
/// must be in their files. The graph is checked and rewritten in canonical form.
///
/// A workload that Python did not get to is answered with infrastructure. Fails with `io_failed`
/// when the helper cannot be started or its answers cannot be read.
result<prepare_answers> run_torch(const child_context& context, const definition& def);

} // namespace gristmill
