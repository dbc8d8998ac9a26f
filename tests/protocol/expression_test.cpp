#include "protocol/expression.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <map>

using namespace gristmill;

namespace {

/// M = 100, eps = 0.5, flag = true; the tensor `w` has shape [3, 5] and type bfloat16.
class sample_scope : public expression_scope {
public:
  result<expression_value> lookup(const expression_name& name) const override {
    if (name == expression_name{"", "M"} || name == expression_name{"axis", "M"}
      || name == expression_name{"axis", "odd name"})
      return int64_t{100};
    if (name.name == "eps")
      return 0.5;
    if (name.name == "flag")
      return true;
    return fail(errc::not_found, "no " + name_text(name));
  }
  result<expression_value> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index) const override {
    if (subject.name != "w")
      return expression_scope::call(function, subject, index);
    if (function == "dim")
      return *index == 0 ? int64_t{3} : int64_t{5};
    if (function == "ctype")
      return type_name{"__nv_bfloat16"};
    return int64_t{15};
  }
};

result<expression_value> value_of(std::string_view text) {
  auto parsed = parse_expression(text, expression_mode::plan);
  if (!parsed)
    return pass(parsed);
  return evaluate(*parsed, sample_scope{});
}

int64_t integer(std::string_view text) {
  auto value = value_of(text);
  CAPTURE(text);
  REQUIRE_MESSAGE(value, (value ? "" : value.error().what));
  REQUIRE(std::holds_alternative<int64_t>(*value));
  return std::get<int64_t>(*value);
}

double floating(std::string_view text) {
  auto value = value_of(text);
  CAPTURE(text);
  REQUIRE_MESSAGE(value, (value ? "" : value.error().what));
  REQUIRE(std::holds_alternative<double>(*value));
  return std::get<double>(*value);
}

bool boolean(std::string_view text) {
  auto value = value_of(text);
  CAPTURE(text);
  REQUIRE_MESSAGE(value, (value ? "" : value.error().what));
  REQUIRE(std::holds_alternative<bool>(*value));
  return std::get<bool>(*value);
}

std::string refusal(std::string_view text) {
  auto value = value_of(text);
  CAPTURE(text);
  REQUIRE_FALSE(value);
  return value.error().what;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("precedence and associativity are Python's") {
  CHECK(integer("1 + 2 * 3") == 7);
  CHECK(integer("10 - 3 - 2") == 5);
  CHECK(integer("2 ** 3 ** 2") == 512);
  CHECK(integer("-2 ** 2") == -4);
  CHECK(integer("(-2) ** 2") == 4);
  CHECK(integer("7 // 2 * 2") == 6);
  CHECK(boolean("1 + 1 == 2 and not 3 < 2 or false"));
  CHECK(boolean("not 1 == 2"));
}

TEST_CASE("floor division and modulo take the sign of the divisor") {
  CHECK(integer("-7 // 2") == -4);
  CHECK(integer("-7 % 2") == 1);
  CHECK(integer("7 % -2") == -1);
  CHECK(integer("7 // -2") == -4);
  CHECK(floating("-7.5 // 2") == -4);
  CHECK(floating("-7.5 % 2") == 0.5);
  // Their quotient is -1, which overflows when it is multiplied back.
  const std::vector<std::pair<std::string, int64_t>> edge{{"low", INT64_MIN}};
  CHECK(*evaluate_axis("1 % low", edge) == INT64_MIN + 1);
}

TEST_CASE("an exact division of integers is an integer, another one is refused") {
  CHECK(integer("M / 4") == 25);
  CHECK(contains(refusal("M / 3"), "use // or float"));
  CHECK(floating("float(M) / 8") == 12.5);
}

TEST_CASE("overflow and division by zero are errors everywhere") {
  for (const char* text : {"9223372036854775807 + 1", "-9223372036854775807 - 2",
         "4611686018427387904 * 2", "2 ** 63", "(-9223372036854775807 - 1) // -1",
         "abs(-9223372036854775807 - 1)", "-(-9223372036854775807 - 1)",
         "next_pow2(4611686018427387905)", "align_up(9223372036854775807, 2)", "int(1e19)"})
    CHECK(contains(refusal(text), "overflow"));
  for (const char* text : {"1 // 0", "1 % 0", "1 / 0", "1.0 / 0", "1 % 0.0"})
    CHECK(contains(refusal(text), "by zero"));
  CHECK(contains(refusal("9223372036854775808"), "out of range"));
  CHECK(integer("(-9223372036854775807 - 1) % -1") == 0);
  CHECK(contains(refusal("exp2(5000)"), "finite"));
  CHECK(contains(refusal("sqrt(-1)"), "finite"));
}

TEST_CASE("a huge power ends at once") {
  CHECK(integer("1 ** 9223372036854775807") == 1);
  CHECK(integer("(-1) ** 9223372036854775807") == -1);
  CHECK(integer("0 ** 9223372036854775807") == 0);
  CHECK(contains(refusal("3 ** 9223372036854775807"), "overflow"));
}

TEST_CASE("logic and select look only at what they need") {
  CHECK(boolean("true or 1 // 0 == 1"));
  CHECK_FALSE(boolean("false and 1 // 0 == 1"));
  CHECK(integer("select(M > 1, 5, 1 // 0)") == 5);
  CHECK(contains(refusal("select(M > 1, 1 // 0, 5)"), "by zero"));
}

TEST_CASE("bools are not numbers in a plan") {
  CHECK(contains(refusal("true + 1"), "int("));
  CHECK(contains(refusal("1 and true"), "takes bools"));
  CHECK(contains(refusal("flag == 1"), "compares"));
  CHECK(integer("int(flag) + 1") == 2);
  CHECK(boolean("flag == true"));
}

TEST_CASE("the functions compute what their names say") {
  CHECK(integer("min(3, 1, 2)") == 1);
  CHECK(floating("max(3, 4.5)") == 4.5);
  CHECK(integer("clamp(M, 1, 16)") == 16);
  CHECK(contains(refusal("clamp(1, 3, 2)"), "lower limit"));
  CHECK(integer("ceil_div(M, 64)") == 2);
  CHECK(integer("ceil_div(0, 64)") == 0);
  CHECK(contains(refusal("ceil_div(M, 0)"), "positive"));
  CHECK(integer("align_up(M, 64)") == 128);
  CHECK(integer("next_pow2(M)") == 128);
  CHECK(integer("next_pow2(0)") == 1);
  CHECK(integer("ilog2(M)") == 6);
  CHECK(contains(refusal("ilog2(0)"), "no logarithm"));
  CHECK(integer("abs(-3)") == 3);
  CHECK(integer("int(-2.7)") == -2);
  CHECK(floating("rsqrt(4)") == 0.5);
  CHECK(floating("sqrt(9)") == 3);
  CHECK(floating("exp2(3) + log2(8)") == 11);
}

TEST_CASE("tensor functions and qualified names go to the scope") {
  CHECK(integer("dim(w, 1) * dim(in.w, 0)") == 15);
  CHECK(integer("numel(scratch.w)") == 15);
  CHECK(std::get<type_name>(*value_of("ctype(w)")).text == "__nv_bfloat16");
  CHECK(boolean("ctype(w) == ctype(w)"));
  CHECK(integer("axis.M + axis(\"odd name\")") == 200);
  CHECK(contains(refusal("ctype(w) + 1"), "C++ type"));
  CHECK(contains(refusal("numel(v)"), "no meaning"));
  CHECK(contains(refusal("numel(1)"), "name of a tensor"));
  CHECK(contains(refusal("dim(w, eps)"), "integer index"));
  CHECK(contains(refusal("K"), "no K"));
}

TEST_CASE("a broken expression says where and what") {
  CHECK(contains(refusal("1 +"), "column 4"));
  CHECK(contains(refusal(""), "found end"));
  CHECK(contains(refusal("1 2"), "unexpected `2`"));
  CHECK(contains(refusal("minn(1, 2)"), "did you mean `min`?"));
  CHECK(contains(refusal("min(1)"), "2 to 16 arguments"));
  CHECK(contains(refusal("abs(1, 2)"), "1 argument"));
  CHECK(contains(refusal("1 < 2 < 3"), "chain"));
  CHECK(contains(refusal("1 ; 2"), "not part"));
  CHECK(contains(refusal("axis(M)"), "double quotes"));
  CHECK(contains(refusal("(1"), "expected `)`"));
  CHECK(contains(refusal("axis(\"x"), "never closed"));
  CHECK(contains(refusal("007"), "not a number"));
  CHECK(contains(refusal("1__0"), "not a number"));
  CHECK(contains(refusal("4N"), "not a number"));
  CHECK(contains(refusal("1 and and"), "unexpected"));
}

TEST_CASE("hostile expressions are bounded") {
  CHECK(contains(refusal(std::string(5000, '1')), "at most 4096"));
  CHECK(contains(refusal(std::string(1000, '(') + "1" + std::string(1000, ')')), "nested deeper"));
  CHECK(contains(refusal(std::string(2000, '-') + "1"), "nested deeper"));
  std::string tower = "1";
  for (int i = 0; i < 500; ++i)
    tower += "**1";
  CHECK(contains(refusal(tower), "nested deeper"));
  std::string chain = "1";
  for (int i = 0; i < 2000; ++i)
    chain += "+1";
  CHECK(contains(refusal(chain), "more than 1000"));
  std::string nots;
  for (int i = 0; i < 900; ++i)
    nots += "not ";
  CHECK(contains(refusal(nots + "true"), "nested deeper"));
  // As deep as allowed, and no deeper.
  CHECK(integer(std::string(60, '(') + "1" + std::string(60, ')')) == 1);
}

TEST_CASE("an axis expression is the arithmetic subset of Python") {
  const std::vector<std::pair<std::string, int64_t>> axes{{"N", 4}, {"名", 3}};
  CHECK(*evaluate_axis("(N\n + 1)", axes) == 5);
  CHECK(*evaluate_axis("N # half\n\n# more", axes) == 4);
  CHECK(*evaluate_axis("True + True", axes) == 2);
  CHECK(*evaluate_axis("名 * 2", axes) == 6);
  CHECK(*evaluate_axis("0o17 + 0b11 + 0x1F", axes) == 49);
  for (const char* wrong : {" N", "\tN", "N\n+1", "N == 4", "min(N, 2)", "axis.N", "true", "None",
         "N and 2", "7/2", "N*0.3", "0 ** -1", "(-8) ** 0.5", "1e400", "", "N.real"}) {
    CAPTURE(wrong);
    CHECK_FALSE(evaluate_axis(wrong, axes));
  }
  CHECK(contains(evaluate_axis("NN", axes).error().what, "did you mean `N`?"));
}

TEST_CASE("an expression knows whether it is a mere name and what it calls") {
  auto name = parse_expression("scratch.part", expression_mode::plan);
  REQUIRE(name);
  CHECK(*name->as_name() == expression_name{"scratch", "part"});
  CHECK_FALSE(parse_expression("part + 1", expression_mode::plan)->as_name());
  CHECK(parse_expression("2 * occupancy(gemm)", expression_mode::plan)->calls("occupancy"));
  CHECK_FALSE(name->calls("occupancy"));
  CHECK(*evaluate_bool(expression{}, sample_scope{}));
}
