#pragma once

#include "gpu/mock/clock.hpp"

#include <string>

namespace gristmill::calibration {

/// What the modelled time of a launch rests on, as one JSON object on one line: for a fit outside.
std::string counts_json(const gpu_profile& gpu, const ptx::entry_info& entry, const sample& taken,
  const launch_time& time);

} // namespace gristmill::calibration
