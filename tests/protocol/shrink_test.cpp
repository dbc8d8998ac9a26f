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
  twin_limits limits;
  limits.elements = 100;
  limits.elements_hard = 10;
  const auto refused = shrink_axes(sample(), with(1000, 1000), limits);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK(refused.error().what.find("limit of 10 elements") != std::string::npos);
  limits.elements_hard = 11; // One of x, eight of w, two of y.
  CHECK(shrink_axes(sample(), with(1000, 1000), limits));
}

TEST_CASE("elements of constant axes are given, and the target is on top of them") {
  definition def = sample();
  def.axes[2].value = 1000; // w[K, 1000]
  twin_limits limits;
  limits.elements = 500;
  const auto axes = shrink_axes(def, with(1000, 17), limits);
  REQUIRE(axes);
  CHECK(value(*axes, "C") == 1000);
  CHECK(value(*axes, "K") == 1);
  // One of x for each N, 1000 of w, 2 N of y.
  CHECK(3 * value(*axes, "N") + 1000 <= 1003 + 500);
}

TEST_CASE("multiply-adds count like elements, and congruence goes last") {
  definition def;
  def.axes = {{"M", axis_kind::variable, 0, "", ""}, {"K", axis_kind::constant, 1024, "", ""},
    {"N", axis_kind::constant, 1024, "", ""}};
  def.inputs = {
    {"a", dtype::float32, false, {"M", "K"}, ""}, {"b", dtype::float32, false, {"N", "K"}, ""}};
  def.outputs = {{"c", dtype::float32, false, {"M", "N"}, ""}};
  workload work;
  work.uuid = "u";
  work.axes = {{"M", 4099}};
  CHECK(*expected_macs(def, *resolve_axes(def, work.axes)) == 4099ULL * 1024 * 1024);
  twin_limits limits;
  const auto fitting = shrink_axes(def, work, limits);
  REQUIRE(fitting);
  CHECK(value(*fitting, "M") == 64 + 4099 % 64);
  limits.macs = 20 << 20;
  const auto axes = shrink_axes(def, work, limits);
  REQUIRE(axes);
  CHECK(value(*axes, "M") % 16 == 4099 % 16);
  limits.macs = 3 << 20;
  const auto tight = shrink_axes(def, work, limits);
  REQUIRE(tight);
  CHECK(value(*tight, "M") == 3);
  limits.macs = 1;
  CHECK(value(*shrink_axes(def, work, limits), "M") == 1);
  limits.macs_hard = 1;
  CHECK(shrink_axes(def, work, limits).error().code == errc::refused);
}

TEST_CASE("multiply-adds are expected of matrices that share an axis, and of every weight") {
  auto def = sample();
  const auto axes = *resolve_axes(def, {{"N", 2}, {"K", 3}});
  CHECK(*expected_macs(def, axes) == 2 * 3 * 8);
  def.inputs[1].shape = {"C"};
  CHECK(*expected_macs(def, axes) == 0);
  def.inputs[1].shape = {"K", "5"};
  CHECK(*expected_macs(def, axes) == 2 * 3 * 5);
  def.inputs[1].shape = {"C", "7"}; // A weight, whatever layer it belongs to: 6 rows of x.
  CHECK(*expected_macs(def, axes) == 6 * 8 * 7);
  def.inputs.push_back(def.inputs[1]);
  CHECK(*expected_macs(def, axes) == 2 * 6 * 8 * 7);
  def.inputs[1].type = def.inputs[2].type = dtype::int32;
  CHECK(*expected_macs(def, axes) == 0);
}

TEST_CASE("an axis that follows a variable one is variable too") {
  auto def = sample();
  def.inputs[1].shape = {"E", "C"}; // E = N * 2
  def.inputs[0].shape = {"N", "E"};
  const auto axes = *resolve_axes(def, {{"N", 2}, {"K", 3}});
  CHECK(*expected_macs(def, axes) == 2 * 4 * 8);
}

TEST_CASE("without a limit a workload is its own twin") {
  const auto work = with(1 << 20, 1 << 15);
  const auto axes = shrink_axes(sample(), work, UINT64_MAX);
  REQUIRE(axes);
  CHECK(value(*axes, "N") == 1 << 20);
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
