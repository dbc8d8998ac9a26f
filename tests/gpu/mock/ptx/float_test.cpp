#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>

using namespace gristmill::ptx::testing;

namespace {

float flush(float x) {
  return std::fabs(x) < 1.17549435e-38F ? std::copysign(0.0F, x) : x;
}

/// Same value; one NaN is as good as another, but it has to be the canonical one.
void same(float got, float want) {
  if (std::isnan(want))
    REQUIRE(raw(got) == 0x7fffffffU);
  else
    REQUIRE(raw(got) == raw(want));
}

template <class F>
void check_two(const std::string& op, F reference) {
  const auto a = interesting<float>(1);
  const auto b = shuffled(interesting<float>(2), 3);
  const auto d = evaluate<float>(op + " %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(b[i]);
    same(d[i], reference(a[i], b[i]));
  }
}

template <class F>
void check_one(const std::string& op, F reference, uint32_t ulps = 0) {
  const auto a = interesting<float>(4);
  const auto d = evaluate<float>(op + " %d, %a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    const float want = reference(a[i]);
    CAPTURE(op);
    CAPTURE(a[i]);
    CAPTURE(d[i]);
    CAPTURE(want);
    if (ulps == 0 || !std::isfinite(want) || want == 0)
      same(d[i], want);
    else
      REQUIRE(std::abs(static_cast<int64_t>(raw(d[i])) - static_cast<int64_t>(raw(want))) <= ulps);
  }
}

} // namespace

TEST_CASE("sums, products and quotients are those of IEEE, with one NaN") {
  check_two("add.f32", [](float a, float b) { return a + b; });
  check_two("sub.rn.f32", [](float a, float b) { return a - b; });
  check_two("mul.f32", [](float a, float b) { return a * b; });
  check_two("div.rn.f32", [](float a, float b) { return a / b; });
  check_one("rcp.rn.f32", [](float a) { return 1 / a; });
  check_one("sqrt.rn.f32", [](float a) { return std::sqrt(a); });
}

TEST_CASE("ftz flushes subnormal operands and results, keeping their sign") {
  check_two("add.ftz.f32", [](float a, float b) { return flush(flush(a) + flush(b)); });
  check_two("mul.rn.ftz.f32", [](float a, float b) { return flush(flush(a) * flush(b)); });
  check_two("div.approx.ftz.f32", [](float a, float b) { return flush(flush(a) / flush(b)); });
}

TEST_CASE("sat brings results into 0 to 1 and turns NaN into 0") {
  check_two("add.sat.f32", [](float a, float b) {
    const float s = a + b;
    return std::isnan(s) || s <= 0 ? 0.0F : std::min(s, 1.0F);
  });
}

TEST_CASE("fma rounds once") {
  const auto a = interesting<float>(5);
  const auto b = shuffled(a, 6);
  const auto c = shuffled(a, 7);
  const auto d = evaluate<float>("fma.rn.f32 %d, %a, %b, %c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i)
    same(d[i], std::fma(a[i], b[i], c[i]));
  // (1 + 2^-12)^2 - 1 - 2^-11 is 2^-24 exactly; with two roundings it would be 0.
  const std::vector<float> x{1 + 0x1p-12F}, y{-1 - 0x1p-11F};
  CHECK(evaluate<float>("fma.rn.f32 %d, %a, %a, %b;", x, y)[0] == 0x1p-24F);
}

TEST_CASE("directed roundings bracket the exact result") {
  const auto a = interesting<float>(8);
  const auto b = shuffled(a, 9);
  for (const std::string op : {"add", "mul", "div"}) {
    const auto down = evaluate<float>(op + ".rm.f32 %d, %a, %b;", a, b);
    const auto up = evaluate<float>(op + ".rp.f32 %d, %a, %b;", a, b);
    const auto zero = evaluate<float>(op + ".rz.f32 %d, %a, %b;", a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]);
      const double y = static_cast<double>(b[i]);
      const double exact = op == "add" ? x + y : op == "mul" ? x * y : x / y;
      if (!std::isfinite(exact) || std::isnan(down[i]))
        continue;
      CAPTURE(op);
      CAPTURE(a[i]);
      CAPTURE(b[i]);
      REQUIRE(static_cast<double>(down[i]) <= exact);
      REQUIRE(static_cast<double>(up[i]) >= exact);
      REQUIRE(raw(zero[i]) == raw(std::signbit(exact) ? up[i] : down[i]));
      REQUIRE(up[i] <= std::nextafter(down[i], INFINITY));
    }
  }
}

TEST_CASE("min and max prefer the number to NaN and -0 to +0 in order; .NaN does not") {
  const auto lesser = [](float a, float b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  };
  const auto greater = [](float a, float b) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  };
  check_two("min.f32", lesser);
  check_two("max.f32", greater);
  check_two("max.NaN.f32",
    [&](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : greater(a, b); });
}

TEST_CASE("approximate functions are right to a few units in the last place") {
  const auto through_double = [](double (*f)(double)) {
    return [f](float x) { return static_cast<float>(f(static_cast<double>(x))); };
  };
  check_one("ex2.approx.f32", through_double(std::exp2), 2);
  check_one("lg2.approx.f32", through_double(std::log2), 2);
  check_one("tanh.approx.f32", through_double(std::tanh), 4);
  check_one("sin.approx.f32", through_double(std::sin), 2);
  check_one(
    "rsqrt.approx.f32",
    [](float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }, 1);
  check_one(
    "ex2.approx.ftz.f32",
    [](float x) { return flush(static_cast<float>(std::exp2(static_cast<double>(flush(x))))); }, 2);
}

TEST_CASE("double precision") {
  const auto a = interesting<double>(10);
  const auto b = shuffled(a, 11);
  const auto sum = evaluate<double>("add.f64 %d, %a, %b;", a, b);
  const auto quotient = evaluate<double>("div.rn.f64 %d, %a, %b;", a, b);
  const auto fused = evaluate<double>("fma.rn.f64 %d, %a, %b, %a;", a, b);
  const auto least = evaluate<double>("min.f64 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const auto check = [](double got, double want) {
      if (std::isnan(want))
        REQUIRE(std::isnan(got));
      else
        REQUIRE(raw(got) == raw(want));
    };
    check(sum[i], a[i] + b[i]);
    check(quotient[i], a[i] / b[i]);
    check(fused[i], std::fma(a[i], b[i], a[i]));
    if (a[i] < b[i] || std::isnan(b[i]))
      check(least[i], a[i]);
  }
}

TEST_CASE("float comparisons are false for NaN unless unordered") {
  const auto a = interesting<float>(12);
  auto b = shuffled(a, 13);
  for (size_t i = 0; i < a.size(); i += 3)
    b[i] = a[i];
  const auto run = [&](const std::string& op) {
    return evaluate<uint32_t>("setp." + op + ".f32 %p1, %a, %b; selp.b32 %d, 1, 0, %p1;", a, b);
  };
  const auto lt = run("lt"), ltu = run("ltu"), ne = run("ne"), neu = run("neu"), eq = run("eq"),
             equ = run("equ"), num = run("num"), nan = run("nan"), ge = run("ge");
  for (size_t i = 0; i < a.size(); ++i) {
    const bool unordered = std::isnan(a[i]) || std::isnan(b[i]);
    REQUIRE(lt[i] == (!unordered && a[i] < b[i]));
    REQUIRE(ltu[i] == (unordered || a[i] < b[i]));
    REQUIRE(ge[i] == (!unordered && a[i] >= b[i]));
    REQUIRE(eq[i] == (!unordered && a[i] == b[i]));
    REQUIRE(equ[i] == (unordered || a[i] == b[i]));
    REQUIRE(ne[i] == (!unordered && a[i] != b[i]));
    REQUIRE(neu[i] == (unordered || a[i] != b[i]));
    REQUIRE(num[i] == !unordered);
    REQUIRE(nan[i] == unordered);
  }
}

TEST_CASE("testp and copysign look at bits only") {
  const auto a = interesting<float>(14);
  const auto b = shuffled(a, 15);
  const auto finite = evaluate<uint32_t>("testp.finite.f32 %p1, %a; selp.b32 %d, 1, 0, %p1;", a, b);
  const auto sign = evaluate<float>("copysign.f32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(finite[i] == static_cast<uint32_t>(std::isfinite(a[i])));
    REQUIRE(raw(sign[i]) == ((raw(b[i]) & 0x7fffffff) | (raw(a[i]) & 0x80000000)));
  }
}
