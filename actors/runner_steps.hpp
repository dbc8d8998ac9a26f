#pragma once

#include "actors/gpu_executor.hpp"
#include "actors/run_context.hpp"

#include <string>

namespace gristmill {

/// The steps of an executor with real runners on `device`. The folder of a job stays when it holds
/// outputs to be judged; then `measurement::output_folder` names it.
measure_steps runner_steps(run_context_ptr context, std::string device);

} // namespace gristmill
