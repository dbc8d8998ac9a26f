#pragma once

#include "kernels/search.hpp"

namespace gristmill {

// One function a strategy; `propose` tells what they promise.

search_result propose_guided(const search_space& space, const search_question& question);
search_result propose_random(const search_space& space, const search_question& question);
search_result propose_exhaustive(const search_space& space, const search_question& question);

} // namespace gristmill
