#include "tensors/compare.hpp"
#include "tensors/miss_pattern.hpp"

#include <array>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

/// A histogram with misses where `holds(row, column)`.
template <class Predicate>
std::string described(Predicate holds, uint32_t each = 10) {
  std::array<uint32_t, 64> tiles{};
  for (size_t row = 0; row < 8; ++row)
    for (size_t column = 0; column < 8; ++column)
      if (holds(row, column))
        tiles[row * 8 + column] = each;
  return describe_misses(tiles);
}

} // namespace

TEST_CASE("the place of the misses is said in words") {
  CHECK(described([](size_t, size_t c) { return c == 7; }) == "misses cluster in the last columns");
  CHECK(described([](size_t, size_t c) { return c >= 6; }) == "misses cluster in the last columns");
  CHECK(described([](size_t r, size_t) { return r == 7; }) == "misses cluster in the last rows");
  CHECK(described([](size_t r, size_t) { return r == 0; }) == "misses cluster in the first rows");
  CHECK(described([](size_t r, size_t c) { return r == 7 && c == 7; })
    == "misses cluster in the last rows and the last columns");
  CHECK(described([](size_t, size_t c) { return c == 3; })
    == "misses cluster in the fourth eighth of the columns");
  CHECK(described([](size_t r, size_t) { return r == 4; })
    == "misses cluster in the fifth eighth of the rows");
  CHECK(described([](size_t r, size_t c) { return r == c; }) == "misses cluster on the diagonal");
  CHECK(described([](size_t r, size_t c) { return c > r; }) == "misses cluster above the diagonal");
  CHECK(described([](size_t r, size_t c) { return c < r; }) == "misses cluster below the diagonal");
  CHECK(described([](size_t r, size_t) { return r > 3; })
    == "misses cluster in the lower half of the rows");
  CHECK(described([](size_t, size_t c) { return c > 3; })
    == "misses cluster in the right half of the columns");
  CHECK(
    described([](size_t, size_t) { return true; }) == "misses are spread over the whole output");
  CHECK(described([](size_t r, size_t c) { return (r + 2) % 8 / 4 == 1 && c % 2 == 0; })
    == "misses lie in 16 of 64 tiles");
}

TEST_CASE("one miss in ten elsewhere does not hide the pattern") {
  std::array<uint32_t, 64> tiles{};
  for (size_t row = 0; row < 8; ++row)
    tiles[row * 8 + 7] = 100;
  tiles[0] = 80;
  CHECK(describe_misses(tiles) == "misses cluster in the last columns");
  tiles[0] = 200;
  CHECK(describe_misses(tiles) != "misses cluster in the last columns");
}

TEST_CASE("without a miss or a histogram there is nothing to say") {
  CHECK(described([](size_t, size_t) { return false; }).empty());
  CHECK(describe_misses({}).empty());
  // Full counters add up in 64 bits.
  CHECK(described([](size_t, size_t) { return true; }, UINT32_MAX)
    == "misses are spread over the whole output");
}

TEST_CASE("a forgotten tail of the columns is seen in a comparison") {
  const std::vector<int64_t> shape{64, 1000};
  std::vector<float> x(64 * 1000, 1);
  const std::vector<float> y(x.size(), 1);
  for (size_t row = 0; row < 64; ++row)
    for (size_t column = 992; column < 1000; ++column)
      x[row * 1000 + column] = 0;
  const auto found =
    compare(dtype::float32, shape, std::as_bytes(std::span(x)), std::as_bytes(std::span(y)), {});
  CHECK(found.mismatches == 64 * 8);
  CHECK(describe_misses(found.miss_tiles) == "misses cluster in the last columns");
}
