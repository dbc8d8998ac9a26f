#pragma once

#include "kernels/search/search_space.hpp"

#include <vector>

namespace gristmill {

/// Points that differ from `base` in the family of exactly one stage, one of each such family, in
/// the order of `neighbours`: the stage with the most work first.
std::vector<program_point> other_families(const search_space& space, const program_point& base);

/// What to try while nothing is correct, in order: the first point, other families for its stages
/// with the most work, the plainest family for every stage of it; the same for the partition with a
/// stage for each operator; then the first points of the partitions between. No point twice.
std::vector<program_point> fallback_ladder(const search_space& space);

} // namespace gristmill
