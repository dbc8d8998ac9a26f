#include "protocol/nearest.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("a misspelling finds what was meant") {
  const std::vector<std::string> known{"max_atol", "max_rtol", "required_matched_ratio"};
  CHECK(*nearest("required_match_ratio", known) == "required_matched_ratio");
  CHECK(*nearest("max_atoll", known) == "max_atol");
  CHECK(*nearest("MAX_RTOL", known) == "max_rtol");
  CHECK(*nearest("mxa_rtol", known) == "max_rtol");
}

TEST_CASE("what resembles nothing has no nearest choice") {
  CHECK_FALSE(nearest("banana", {"grid", "block"}));
  CHECK_FALSE(nearest("x", {"y"}));
  CHECK_FALSE(nearest("", {"grid"}));
  CHECK_FALSE(nearest("grid", {}));
  CHECK_FALSE(nearest(std::string(100000, 'a'), {std::string(100000, 'a')}));
}

TEST_CASE("a short name may be wrong in one letter") {
  CHECK(*nearest("gird", {"grid", "block"}) == "grid");
  CHECK(*nearest("NN", {"N", "K"}) == "N");
}

TEST_CASE("a suggestion names the nearest or lists what there is") {
  CHECK(suggestion("gird", {"grid", "block"}) == "; did you mean `grid`?");
  CHECK(suggestion("banana", {"grid", "block"}) == "; known: grid, block");
  CHECK(suggestion("banana", {}) == "");
  CHECK(suggestion("banana", std::vector<std::string>(20, "grid")).ends_with(", …"));
}
