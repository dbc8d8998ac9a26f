#pragma once

#include "gpu/lease/policy_registry.hpp"

#include <vector>

namespace gristmill {

policy_kind backfill_kind();
policy_kind drr_kind();
policy_kind edf_kind();
policy_kind external_kind();
policy_kind fifo_kind();
policy_kind las_kind();
policy_kind lottery_kind();
policy_kind maxmin_kind();
policy_kind priority_kind();
policy_kind rr_kind();
policy_kind sept_kind();
policy_kind stride_kind();

/// What comes with the house.
std::vector<policy_kind> house_policies();

/// Called once, before the first text is read.
void add_own_policies();

} // namespace gristmill
