#pragma once

#include "scoring/verdict.hpp"

#include <map>
#include <string>

namespace gristmill {

/// T_b by problem and workload.
using baseline_times = std::map<std::string, std::map<std::string, workload_yardstick>>;

} // namespace gristmill
