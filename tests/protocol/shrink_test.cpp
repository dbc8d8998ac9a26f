#include "protocol/shrink.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

/// x[N, K] and w[K, C] with C = 8 constant, y[E] with E = N * 2.
definition sample() {
  definition def;
  def.axes = {{"N", axis_kind::variable, 0, "", ""}, {"K", axis_kind::variable, 0, "", ""},
    {"C", axis_kind::constant, 8, "", ""}, {"E", axis_kind::expression, 0, "N*2", ""}};
  def.inputs = {
    {"x", dtype::float32, false, {"N", "K"}, ""}, {"w", dtype::float32, false, {"K", "C"}, ""}};
  def.outputs = {{"y", dtype::float32, false, {"E"}, ""}};
  return def;
}

workload with(int64_t n, int64_t k) {
  workload work;
  work.uuid = "u";
  work.axes = {{"N", n}, {"K", k}};
  return work;
}

int64_t value(const axis_values& axes, const char* axis_name) {
  const auto* found = find_axis_value(axes, axis_name);
  REQUIRE(found != nullptr);
  return *found;
}

} // namespace

TEST_CASE("a workload that fits is its own twin") {
  const auto axes = shrink_axes(sample(), with(1000, 100), 1000 * 100 + 800 + 2000);
  REQUIRE(axes);
  CHECK(*axes == *resolve_axes(sample(), with(1000, 100).axes));
}

TEST_CASE("the first variable axis shrinks first, as little as needed") {
  const auto axes = shrink_axes(sample(), with(1000, 100), 50000);
  REQUIRE(axes);
  CHECK(value(*axes, "K") == 100);
  const int64_t n = value(*axes, "N");
  CHECK(n % 64 == 1000 % 64);
  CHECK(n * 100 + 800 + 2 * n <= 50000);
  CHECK((n + 64) * 100 + 800 + 2 * (n + 64) > 50000);
  CHECK(value(*axes, "E") == 2 * n);
  CHECK(value(*axes, "C") == 8);
}

TEST_CASE("the next axis shrinks only when the one before is at its floor") {
  const auto axes = shrink_axes(sample(), with(1001, 6400), 40000);
  REQUIRE(axes);
  CHECK(value(*axes, "N") == 64 + 1001 % 64);
  CHECK(value(*axes, "K") % 64 == 0);
  CHECK(value(*axes, "K") >= 64);
}

TEST_CASE("an axis below twice 64 stays as it is") {
  const auto axes = shrink_axes(sample(), with(100, 100000), 30000);
  REQUIRE(axes);
  CHECK(value(*axes, "N") == 100);
  CHECK(value(*axes, "K") % 64 == 100000 % 64);
}

TEST_CASE("what cannot be made small enough is refused with its size") {
  const auto refused = shrink_axes(sample(), with(1000, 1000), 100);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("limit of 100") != std::string::npos);
}

TEST_CASE("a smaller modulus is kept only where a larger one does not fit") {
  const auto axes = shrink_axes(sample(), with(1000, 1001), 4000);
  REQUIRE(axes);
  CHECK(value(*axes, "N") % 16 == 1000 % 16);
  CHECK(value(*axes, "K") % 16 == 1001 % 16);
  CHECK(value(*axes, "N") % 64 != 1000 % 64);
}

TEST_CASE("inputs from files have fixed shapes") {
  auto work = with(1000, 1000);
  work.inputs = {{"x", input_kind::safetensors, int64_t{0}, "p", "k"}};
  CHECK(shrink_axes(sample(), work, 1000).error().code == errc::unsupported);
  work.inputs[0].name = "not_an_input";
  CHECK(shrink_axes(sample(), work, 100000));
}

TEST_CASE("elements are counted over inputs and outputs and never wrap") {
  CHECK(*workload_elements(sample(), *resolve_axes(sample(), {{"N", 2}, {"K", 3}})) == 6 + 24 + 4);
  CHECK_FALSE(shrink_axes(sample(), with(int64_t{1} << 40, int64_t{1} << 40), 1000));
}
