#pragma once

#include "simulation/report/lab_plan.hpp"
#include "simulation/report/lab_row.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gristmill::test {

/// A result that nobody has simulated: every number follows from `level` and `seed`, and a higher
/// level waits longer, is fairer and reaches a higher geomean.
lab_result made_up_result(double level, uint64_t seed);

/// A plan with these planners under one policy, on one point; the first planner is the baseline.
lab_plan made_up_plan(const std::vector<std::string>& planners, uint32_t seeds);

/// A row for each variant and seed; the level of a variant is its index.
std::vector<lab_row> made_up_rows(const lab_plan& plan);

} // namespace gristmill::test
