#include "tensors/codec.hpp"
#include "tensors/nan_places.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace gristmill;

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> stored(dtype type, const std::vector<float>& values) {
  std::vector<std::byte> out(values.size() * element_bits(type) / 8);
  encode_from_float(type, values, out);
  return out;
}

std::vector<float> loaded(dtype type, const std::vector<std::byte>& bytes, size_t count) {
  std::vector<float> out(count);
  decode_to_float(type, bytes, out);
  return out;
}

} // namespace

TEST_CASE("places of NaN are counted by side, and are 0 in both copies") {
  for (dtype type : {dtype::float32, dtype::bfloat16, dtype::float16, dtype::float64}) {
    CAPTURE(name(type));
    const auto first = stored(type, {1, none, none, 4, 5});
    const auto second = stored(type, {1, none, 3, none, 6});
    const auto found = find_nans(type, first, second);
    CHECK(found.both == 1);
    CHECK(found.only_first == 1);
    CHECK(found.only_second == 1);
    CHECK_FALSE(found.same());
    CHECK(loaded(type, found.first, 5) == std::vector<float>{1, 0, 0, 0, 5});
    CHECK(loaded(type, found.second, 5) == std::vector<float>{1, 0, 0, 0, 6});
  }
}

TEST_CASE("tensors with NaN in the same places, or with none at all, have the same places") {
  std::vector<float> values(5000, 1);
  CHECK(find_nans(dtype::float32, stored(dtype::float32, values), stored(dtype::float32, values))
          .same());
  values[4999] = none;
  const auto found =
    find_nans(dtype::float32, stored(dtype::float32, values), stored(dtype::float32, values));
  CHECK(found.same());
  CHECK(found.both == 1);
  const std::vector<std::byte> whole(8, std::byte{0xff});
  CHECK(find_nans(dtype::int32, whole, whole).both == 0);
}
