#include "protocol/exporter/expression_code.hpp"
#include "protocol/exporter/runtime/gm_value.h"
#include "tensors/codec.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace gristmill;

namespace {

/// Names `a` and `b`, for the evaluator and for the code.
class two_names : public expression_scope, public code_names {
public:
  expression_value a;
  expression_value b;

  result<expression_value> lookup(const expression_name& name) const override {
    return name.name == "a" ? a : b;
  }
  result<std::string> value_code(const expression_name& name) const override { return name.name; }
  result<std::string> call_code(std::string_view function, const expression_name& subject,
    const std::string& index) const override {
    return std::string{function} + "<" + name_text(subject) + ">" + index;
  }
};

gm::value to_gm(const expression_value& x) {
  if (const auto* whole = std::get_if<int64_t>(&x))
    return gm::integer(*whole);
  if (const auto* number = std::get_if<double>(&x))
    return gm::real(*number);
  if (const auto* flag = std::get_if<bool>(&x))
    return gm::flag(*flag);
  return gm::type("float");
}

/// Nothing where the exported code throws.
std::optional<gm::value> tried(const std::function<gm::value()>& run) {
  try {
    return run();
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

bool same(const gm::value& a, const expression_value& x) {
  const auto b = to_gm(x);
  if (a.what != b.what)
    return false;
  return a.what == gm::kind::integer ? a.i == b.i
    : a.what == gm::kind::real       ? a.d == b.d
    : a.what == gm::kind::flag       ? a.b == b.b
                                     : true;
}

std::string code_of(const char* text, expression_mode mode = expression_mode::plan) {
  auto parsed = parse_expression(text, mode);
  REQUIRE(parsed);
  auto code = expression_code(*parsed, two_names{});
  REQUIRE(code);
  return *code;
}

struct operation {
  const char* text;
  std::function<gm::value(const gm::value&, const gm::value&)> run;
};

} // namespace

TEST_CASE(
  "exported arithmetic gives what the plan's own evaluator gives, or refuses where it does") {
  using v = const gm::value&;
  const std::vector<operation> operations{
    {"a + b", [](v a, v b) { return gm::add(a, b); }},
    {"a - b", [](v a, v b) { return gm::subtract(a, b); }},
    {"a * b", [](v a, v b) { return gm::multiply(a, b); }},
    {"a / b", [](v a, v b) { return gm::divide(a, b); }},
    {"a // b", [](v a, v b) { return gm::floor_divide(a, b); }},
    {"a % b", [](v a, v b) { return gm::modulo(a, b); }},
    {"a ** b", [](v a, v b) { return gm::power(a, b); }},
    {"a < b", [](v a, v b) { return gm::flag(gm::less(a, b)); }},
    {"a <= b", [](v a, v b) { return gm::flag(gm::less_equal(a, b)); }},
    {"a == b", [](v a, v b) { return gm::flag(gm::equal(a, b)); }},
    {"a and b", [](v a, v b) { return gm::flag(gm::to_flag(a) && gm::to_flag(b)); }},
    {"min(a, b)",
      [](v a, v b) {
        return gm::minimum({a, b});
      }},
    {"max(a, b)",
      [](v a, v b) {
        return gm::maximum({a, b});
      }},
    {"clamp(a, b, 7)", [](v a, v b) { return gm::clamp(a, b, gm::integer(7)); }},
    {"ceil_div(a, b)", [](v a, v b) { return gm::ceil_div(a, b); }},
    {"align_up(a, b)", [](v a, v b) { return gm::align_up(a, b); }},
    {"next_pow2(a)", [](v a, v) { return gm::next_pow2(a); }},
    {"ilog2(a)", [](v a, v) { return gm::ilog2(a); }},
    {"abs(a)", [](v a, v) { return gm::absolute(a); }},
    {"-a", [](v a, v) { return gm::negate(a); }},
    {"int(a)", [](v a, v) { return gm::as_int(a); }},
    {"float(a)", [](v a, v) { return gm::as_real(a); }},
    {"sqrt(a)", [](v a, v) { return gm::square_root(a); }},
    {"rsqrt(a)", [](v a, v) { return gm::reciprocal_root(a); }},
    {"exp2(a)", [](v a, v) { return gm::exp2_of(a); }},
    {"log2(a)", [](v a, v) { return gm::log2_of(a); }},
  };
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  const std::vector<expression_value> operands{int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2},
    int64_t{7}, int64_t{-7}, int64_t{64}, int64_t{1} << 62, lowest, highest, 0.0, 0.5, -2.5, 3.0,
    1e300, true, false};
  two_names names;
  size_t both = 0;
  for (const auto& one : operations) {
    const auto parsed = parse_expression(one.text, expression_mode::plan);
    REQUIRE(parsed);
    for (const auto& a : operands)
      for (const auto& b : operands) {
        names.a = a;
        names.b = b;
        const auto expected = evaluate(*parsed, names);
        const auto got = tried([&] { return one.run(to_gm(a), to_gm(b)); });
        CAPTURE(one.text);
        CAPTURE(value_text(a));
        CAPTURE(value_text(b));
        // `and` looks only at what it needs; the code above looked at both.
        CHECK(got.has_value() == expected.has_value());
        if (got && expected) {
          CHECK(same(*got, *expected));
          ++both;
        }
      }
  }
  CHECK(both > 1000);
}

TEST_CASE("every form of an expression has its code") {
  CHECK(code_of("1 + 2 * a")
    == "gm::add(gm::integer(INT64_C(1)), gm::multiply(gm::integer(INT64_C(2)), a))");
  CHECK(code_of("not (a < 1 or true)")
    == "gm::flag(!gm::to_flag(gm::flag(gm::to_flag(gm::flag(gm::less(a, gm::integer(INT64_C(1))))) "
       "|| "
       "gm::to_flag(gm::flag(true)))))");
  CHECK(code_of("a >= b") == "gm::flag(gm::less_equal(b, a))");
  CHECK(code_of("a != b") == "gm::flag(!gm::equal(a, b))");
  // Lazy: only the branch that is taken is computed.
  CHECK(code_of("select(a > 0, 1, 1 // a)").find(" ? ") != std::string::npos);
  CHECK(code_of("min(a, b, 3)") == "gm::minimum({a, b, gm::integer(INT64_C(3))})");
  CHECK(code_of("0.1") == "gm::real(0x1.999999999999ap-4)");
  CHECK(code_of("-a") == "gm::negate(a)");
  CHECK(code_of("dim(in.x, -1)") == "dim<in.x>gm::negate(gm::integer(INT64_C(1)))");
  CHECK(code_of("sqrt(float(a))") == "gm::square_root(gm::as_real(a))");
}

TEST_CASE("an expression axis divides as Python does and must come out whole") {
  CHECK(code_of("a / 2", expression_mode::axis) == "gm::axis_divide(a, gm::integer(INT64_C(2)))");
  CHECK(code_of("True * a", expression_mode::axis) == "gm::multiply(gm::integer(1), a)");
  CHECK(gm::to_axis(gm::axis_divide(gm::integer(8), gm::integer(2))) == 4);
  CHECK_THROWS(gm::to_axis(gm::axis_divide(gm::integer(7), gm::integer(2))));
  CHECK(gm::to_axis(gm::axis_power(gm::integer(2), gm::integer(-1)).what == gm::kind::real
            ? gm::integer(1)
            : gm::integer(0))
    == 1);
}

TEST_CASE("a parameter that does not fit its type is refused, and 16-bit floats round to even") {
  CHECK(gm::checked_integer<int32_t>(gm::integer(INT32_MAX), "int32_t") == INT32_MAX);
  CHECK_THROWS(gm::checked_integer<int32_t>(gm::integer(int64_t{INT32_MAX} + 1), "int32_t"));
  CHECK_THROWS(gm::checked_integer<uint64_t>(gm::integer(-1), "uint64_t"));
  CHECK_THROWS(gm::checked_integer<int32_t>(gm::real(1), "int32_t"));
  CHECK_THROWS(gm::to_flag(gm::integer(1)));
  CHECK_THROWS(gm::checked_half(gm::real(65520)));
  CHECK_THROWS(gm::checked_float(gm::real(1e39)));
  for (float x : {0.0f, -0.0f, 1.0f, 0.1f, -2.5f, 65504.0f, 6.1e-5f, 6.0e-5f, 5.96e-8f, 2.9e-8f,
         1.0009765f, 1.00048828125f, 3.14159265f, -1e-7f}) {
    CAPTURE(x);
    CHECK(gm::half_bits(x) == fp16_from_float(x));
    CHECK(gm::bfloat16_bits(x) == bf16_from_float(x));
  }
}
