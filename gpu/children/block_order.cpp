#include "gpu/children/block_order.hpp"

namespace gristmill {

std::vector<bool> block_order(const tensor_key& secret, uint32_t blocks) {
  tensor_key key = secret;
  // Another stream than that of the timed calls.
  key.bytes[15] ^= 0xb1;
  const philox_stream stream(key);
  std::vector<bool> order;
  for (uint32_t done = 0; done < blocks; done += 2) {
    const bool first = (stream.block(done)[0] & 1) != 0;
    order.push_back(first);
    order.push_back(!first);
    if (done + 1 < blocks) {
      order.push_back(!first);
      order.push_back(first);
    }
  }
  return order;
}

} // namespace gristmill
