#pragma once

#include "gpu/toolchain/shared_library.hpp"
#include "messages/result.hpp"

#include <string>
#include <vector>

namespace gristmill::cuda {

/// Opens the first of `names` that loads: in `folders`, where the loader looks by itself, then
/// where toolkits and PyTorch's packages put it ("/usr/local/cuda*", "/usr/lib/…", "python3*/
/// {dist,site}-packages/nvidia"). Fails with `not_found`, naming what was looked for and what the
/// loader said last.
result<shared_library> find_library(
  const std::vector<std::string>& names, const std::vector<std::string>& folders);

} // namespace gristmill::cuda
