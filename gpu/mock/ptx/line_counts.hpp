#pragma once

#include "gpu/mock/ptx/warp.hpp"

#include <cstdint>
#include <vector>

namespace gristmill::ptx {

/// Sums up what the operations of each line did. `diverged`: of each operation.
std::vector<line_counts> count_lines(const kernel& code,
  const std::vector<operation_counts>& operations, const std::vector<uint64_t>& diverged);

} // namespace gristmill::ptx
