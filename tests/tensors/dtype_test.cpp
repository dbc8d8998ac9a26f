#include "tensors/dtype.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("every dtype reads back from its name, and nothing else reads") {
  CHECK(dtype_names().size() == 13);
  for (const auto& text : dtype_names()) {
    const auto type = parse_dtype(text);
    REQUIRE(type);
    CHECK(name(*type) == text);
  }
  CHECK(name(dtype::boolean) == "bool");
  for (const char* wrong : {"", "Float32", "uint8", "boolean", "float8_e8m0fnu", "float32 "})
    CHECK_FALSE(parse_dtype(wrong));
}

TEST_CASE("a tensor has the bytes of its elements, and fp4 half of them") {
  CHECK(*storage_bytes(dtype::float64, {2, 3}) == 48);
  CHECK(*storage_bytes(dtype::bfloat16, {2, 3}) == 12);
  CHECK(*storage_bytes(dtype::boolean, {5}) == 5);
  CHECK(*storage_bytes(dtype::float32, {}) == 4);
  CHECK(*storage_bytes(dtype::float4_e2m1, {3, 4}) == 6);
  CHECK(*storage_bytes(dtype::float4_e2m1fn_x2, {2}) == 1);
}

TEST_CASE("an fp4 tensor needs an even last dimension") {
  CHECK_FALSE(storage_bytes(dtype::float4_e2m1, {4, 3}));
  CHECK_FALSE(storage_bytes(dtype::float4_e2m1, {}));
  CHECK(*storage_bytes(dtype::float4_e2m1, {3, 0}) == 0);
}

TEST_CASE("a zero anywhere makes a tensor empty, however large the rest") {
  CHECK(*element_count({0, INT64_MAX, INT64_MAX}) == 0);
  CHECK(*element_count({INT64_MAX, INT64_MAX, 0}) == 0);
  CHECK(*storage_bytes(dtype::float32, {INT64_MAX, INT64_MAX, 0}) == 0);
}

TEST_CASE("a count that overflows is an error and never wraps") {
  CHECK_FALSE(element_count({INT64_MAX, 2}));
  CHECK_FALSE(element_count({int64_t{1} << 32, int64_t{1} << 32}));
  CHECK_FALSE(storage_bytes(dtype::float64, {int64_t{1} << 61}));
  CHECK_FALSE(element_count({2, -1}));
  CHECK(*element_count({int64_t{1} << 62}) == uint64_t{1} << 62);
}
