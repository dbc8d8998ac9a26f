#pragma once

#include "kernels/lowering/linker.hpp"
#include "tensors/dtype.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// A piece of scratch memory that one value of a program has, or several one after the other.
struct scratch_slot {
  dtype type = dtype::float32;
  /// The shapes of the values, each different one once.
  std::vector<std::vector<symbolic_size>> shapes;
};

struct scratch_layout {
  std::vector<scratch_slot> slots;
  /// Slot of each value that is no input and no output.
  std::map<int64_t, size_t> slot_of;
};

/// Memory for what the stages pass to each other. A value has a slot of its own, unless that would
/// be too many, or too much for the plan's limit at a workload of the problem: then values whose
/// lifetimes do not overlap share slots of their type.
scratch_layout lay_out_scratch(const program_graph& program, const program_code& code);

} // namespace gristmill
