#pragma once

#include "gpu/mock/ptx/tensor_map.hpp"
#include "tests/gpu/mock/ptx/setup.hpp"

namespace gristmill::ptx::testing {

/// Passes a tensor map of a buffer that has been added before.
inline void pass_map(setup& s, size_t buffer, const tensor_map_spec& spec) {
  s.value(encode_tensor_map(s.what.memory[buffer].device, spec));
}

} // namespace gristmill::ptx::testing
