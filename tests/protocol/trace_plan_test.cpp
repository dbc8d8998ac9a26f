#include "protocol/trace_plan.hpp"

#include <doctest/doctest.h>
#include <set>

using namespace gristmill;

namespace {

definition small_definition() {
  definition def;
  def.name = "small";
  def.axes = {{"M", axis_kind::variable, 0, "", ""}, {"K", axis_kind::constant, 7, "", ""},
    {"N", axis_kind::variable, 0, "", ""}, {"H", axis_kind::expression, 0, "N // 2", ""}};
  def.inputs = {{"x", dtype::bfloat16, false, {"M", "K"}, ""},
    {"eps", dtype::float32, true, {}, ""}, {"count", dtype::int32, true, {}, ""},
    {"w", dtype::float32, false, {"N"}, ""}};
  def.outputs = {{"y", dtype::bfloat16, false, {"M", "H"}, ""}};
  return def;
}

int64_t value_of(const trace_set& set, const std::string& axis_name) {
  const auto* value = find_axis_value(set.axes, axis_name);
  REQUIRE(value);
  return *value;
}

} // namespace

TEST_CASE("a trace tells the axes apart by their sizes") {
  auto attempts = make_trace_attempts(small_definition(), {});
  REQUIRE(attempts);
  for (const auto& attempt : *attempts) {
    std::set<int64_t> sizes{7};
    for (const auto& set : attempt.sets)
      for (const char* axis_name : {"M", "N"})
        CHECK(sizes.insert(value_of(set, axis_name)).second);
    for (const auto& set : attempt.sets) {
      CHECK(value_of(set, "K") == 7);
      CHECK(value_of(set, "H") == value_of(set, "N") / 2);
    }
  }
}

TEST_CASE("a trace has the tensors of the definition in their order, with their shapes") {
  auto attempts = make_trace_attempts(small_definition(), {});
  REQUIRE(attempts);
  const auto& set = attempts->front().sets[1];
  const auto m = value_of(set, "M"), n = value_of(set, "N");
  CHECK(set.inputs
    == std::vector<trace_tensor>{{"x", dtype::bfloat16, {m, 7}}, {"w", dtype::float32, {n}}});
  CHECK(set.outputs == std::vector<trace_tensor>{{"y", dtype::bfloat16, {m, n / 2}}});
}

TEST_CASE("scalars start from the first workload and differ between the two calls") {
  workload first;
  first.inputs = {{"eps", input_kind::scalar, python_number{1e-5}, "", ""},
    {"count", input_kind::scalar, python_number{int64_t{4}}, "", ""}};
  auto attempts = make_trace_attempts(small_definition(), {first});
  REQUIRE(attempts);
  const auto& [one, two] = attempts->front().sets;
  REQUIRE(one.scalars.size() == 2);
  CHECK(one.scalars[0].first == "eps");
  CHECK(one.scalars[0].second.number == doctest::Approx(1e-5).epsilon(0.01));
  CHECK(one.scalars[0].second.number != two.scalars[0].second.number);
  CHECK(one.scalars[1].second.integer == 4);
  CHECK(two.scalars[1].second.integer == 5);
}

TEST_CASE("later attempts keep the scalars that all workloads set alike, whole ones first") {
  workload first;
  first.inputs = {{"eps", input_kind::scalar, python_number{1e-5}, "", ""},
    {"count", input_kind::scalar, python_number{int64_t{4}}, "", ""}};
  const auto moving = make_trace_attempts(small_definition(), {workload{}});
  const auto attempts = make_trace_attempts(small_definition(), {first, first});
  REQUIRE(moving);
  REQUIRE(attempts);
  REQUIRE(attempts->size() == 3 * moving->size());
  const auto& whole = (*attempts)[moving->size()].sets;
  const auto& all = attempts->back().sets;
  for (size_t turn : {0, 1}) {
    CHECK(whole[turn].scalars[1].second.integer == 4);
    CHECK(all[turn].scalars[1].second.integer == 4);
    CHECK(all[turn].scalars[0].second.number == 1e-5);
  }
  CHECK(whole[0].scalars[0].second.number != whole[1].scalars[0].second.number);

  auto second = first;
  second.inputs[0].value = python_number{1e-3};
  const auto differing = make_trace_attempts(small_definition(), {first, second});
  REQUIRE(differing);
  CHECK(differing->size() == 2 * moving->size());
  CHECK(differing->back().sets[0].scalars[0].second.number != 1e-5);
}

TEST_CASE("the last attempts make one axis a multiple of another where the workloads do") {
  workload first, second;
  first.axes = {{"M", 8}, {"N", 2}};
  second.axes = {{"M", 6}, {"N", 6}};
  const auto attempts = make_trace_attempts(small_definition(), {first, second});
  REQUIRE(attempts);
  const auto& last = attempts->back().sets;
  CHECK(value_of(last[0], "M") == 2 * value_of(last[0], "N"));
  CHECK(value_of(last[1], "M") == 3 * value_of(last[1], "N"));
  second.axes[0].second = 7;
  const auto without = make_trace_attempts(small_definition(), {first, second});
  REQUIRE(without);
  CHECK(without->size() == attempts->size() - 1);
}

TEST_CASE("an axis that only even sizes split is tried with even sizes") {
  auto def = small_definition();
  def.axes[3].expression = "N / 2"; // Exact division: odd sizes do not resolve.
  auto attempts = make_trace_attempts(def, {});
  REQUIRE(attempts);
  CHECK(value_of(attempts->front().sets[0], "N") % 2 == 0);
}

TEST_CASE("constants whose sizes cannot be computed with are refused with the reason") {
  auto def = small_definition();
  def.axes[1].value = int64_t{1} << 40;
  auto attempts = make_trace_attempts(def, {});
  REQUIRE_FALSE(attempts);
  CHECK(attempts.error().code == errc::refused);
  CHECK(attempts.error().what.find("elements") != std::string::npos);
}

TEST_CASE("more variable axes than there are sizes are refused") {
  definition def;
  for (int i = 0; i < 40; ++i)
    def.axes.push_back({"A" + std::to_string(i), axis_kind::variable, 0, "", ""});
  CHECK_FALSE(make_trace_attempts(def, {}));
}
