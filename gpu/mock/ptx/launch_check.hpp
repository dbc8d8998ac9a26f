#pragma once

#include "gpu/mock/ptx/kernel.hpp"
#include "gpu/mock/ptx/ptx.hpp"

#include <string>

namespace gristmill::ptx {

/// Why a GPU would refuse the launch; empty when it is possible.
std::string check_launch(const launch& what, const kernel& code);
/// Blocks that are resident at most.
uint64_t resident_limit(const launch& what);

} // namespace gristmill::ptx
