#include "tensors/philox.hpp"

#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>

using namespace gristmill;

// The known answers that the authors of the algorithm publish for philox4x32-10.
TEST_CASE("Philox gives the published answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0})
    == philox_block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff})
    == philox_block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})
    == philox_block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every byte of a tensor's key matters") {
  const auto base = philox_stream{tensor_key{}}.block(7);
  for (size_t i = 0; i < 16; ++i) {
    tensor_key key;
    key.bytes[i] = 1;
    CAPTURE(i);
    CHECK(philox_stream{key}.block(7) != base);
  }
}

TEST_CASE("blocks beyond 2^32 are not those below") {
  const philox_stream stream{tensor_key{{1}}};
  CHECK(stream.block(5) != stream.block((uint64_t{1} << 32) + 5));
  CHECK(stream.block(5) == stream.block(5));
}
