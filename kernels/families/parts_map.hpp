#pragma once

#include "kernels/stage.hpp"

namespace gristmill {

/// Family `parts`: a map whose output is made of equal parts along its last dimension, such as the
/// two halves of a head that rotary embedding turns, or of one part. A thread computes the same
/// place of all parts, so that what they share is read once, in vectors, and keeps what does not
/// change along the dimension before the last (the heads of a position).
result<stage_space_ptr> read_parts_map_stage(const problem& target, const op_graph& graph);

} // namespace gristmill
