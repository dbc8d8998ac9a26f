#pragma once

#include "gpu/device.hpp"

namespace gristmill {

/// A small kernel with a known answer: whether this device loads, computes and copies as it should.
/// Errors: `device_fault` with what was wrong.
result<void> run_canary(device& gpu);

} // namespace gristmill
