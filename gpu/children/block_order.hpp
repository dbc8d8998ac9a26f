#pragma once

#include "tensors/philox.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// In which order the blocks of a comparison run: true is the rival's. `blocks` of each side, in
/// groups of four that are ABBA or BAAB, as the secret says; of an odd number the last pair is AB
/// or BA. A drift of the device that is steady over a group moves both sides alike.
std::vector<bool> block_order(const tensor_key& secret, uint32_t blocks);

} // namespace gristmill
