#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>

using namespace gristmill::ptx::testing;

namespace {

/// Float to integer: clamped, NaN to 0.
template <class D>
D clamp(double x) {
  if (std::isnan(x))
    return 0;
  const double high = std::ldexp(1.0, 8 * sizeof(D) - (std::is_signed_v<D> ? 1 : 0));
  if (x >= high)
    return std::numeric_limits<D>::max();
  if (x <= static_cast<double>(std::numeric_limits<D>::min()))
    return std::numeric_limits<D>::min();
  return static_cast<D>(x);
}

template <class D, class S>
void check_to_integer(const std::string& type, const std::string& from) {
  const auto a = interesting<S>(1);
  const std::pair<const char*, double (*)(double)> modes[] = {
    {"rzi", std::trunc}, {"rni", std::nearbyint}, {"rmi", std::floor}, {"rpi", std::ceil}};
  for (const auto& [mode, round] : modes) {
    const std::string op = "cvt." + std::string(mode) + "." + type + "." + from;
    const auto d = evaluate<D>(op + " %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(op);
      CAPTURE(a[i]);
      // What an H200 gives for NaN: nothing, or only the highest bit where 64 bits take part.
      const D nothing = sizeof(D) == 8 || sizeof(S) == 8
        ? static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1))
        : D{0};
      REQUIRE(d[i] == (std::isnan(a[i]) ? nothing : clamp<D>(round(static_cast<double>(a[i])))));
    }
  }
}

} // namespace

TEST_CASE(
  "floats become integers by the given rounding, clamped, and NaN becomes what a GPU makes of it") {
  check_to_integer<int32_t, float>("s32", "f32");
  check_to_integer<uint32_t, float>("u32", "f32");
  check_to_integer<int64_t, float>("s64", "f32");
  check_to_integer<uint64_t, double>("u64", "f64");
  check_to_integer<int32_t, double>("s32", "f64");
  check_to_integer<int16_t, float>("s16", "f32");
}

TEST_CASE("integers become floats by the given rounding") {
  const auto a = interesting<int64_t>(2);
  const std::pair<const char*, int> modes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [mode, rounding] : modes) {
    const std::string m(mode);
    const auto f = evaluate<float>("cvt." + m + ".f32.s64 %d, %a;", a);
    const auto u = evaluate<float>("cvt." + m + ".f32.u64 %d, %a;", a);
    const auto d = evaluate<double>("cvt." + m + ".f64.u64 %d, %a;", a);
    const auto s = evaluate<float>("cvt.u32.u64 %r5, %a; cvt." + m + ".f32.s32 %d, %r5;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(m);
      CAPTURE(a[i]);
      std::fesetround(rounding);
      const volatile int64_t x = a[i];
      const volatile float want = static_cast<float>(x);
      const volatile float want_u = static_cast<float>(static_cast<uint64_t>(x));
      const volatile double want_d = static_cast<double>(static_cast<uint64_t>(x));
      const volatile float want_s = static_cast<float>(static_cast<int32_t>(x));
      std::fesetround(FE_TONEAREST);
      REQUIRE(f[i] == want);
      REQUIRE(u[i] == want_u);
      REQUIRE(d[i] == want_d);
      REQUIRE(s[i] == want_s);
    }
  }
}

TEST_CASE("integers change width by their signs; sat clamps") {
  const auto a = interesting<uint64_t>(3);
  const auto low = evaluate<uint32_t>("cvt.u32.u64 %d, %a;", a);
  const auto sat = evaluate<int32_t>("cvt.sat.s32.s64 %d, %a;", a);
  const auto byte = evaluate<uint32_t>("cvt.u32.u64 %r5, %a; cvt.s32.s8 %d, %r5;", a);
  const auto ubyte = evaluate<uint64_t>("cvt.u32.u64 %r5, %a; cvt.u16.u32 %h1, %r5; "
                                        "cvt.u64.u8 %d, %h1;",
    a);
  const auto sat_byte = evaluate<uint32_t>("cvt.sat.u8.s64 %d, %a;", a);
  const auto sign = evaluate<int64_t>("cvt.u32.u64 %r5, %a; cvt.s64.s32 %d, %r5;", a);
  const auto byte_float = evaluate<float>("cvt.u16.u64 %h1, %a; cvt.rn.f32.u8 %d, %h1;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    const auto s = static_cast<int64_t>(a[i]);
    CAPTURE(s);
    REQUIRE(low[i] == static_cast<uint32_t>(a[i]));
    REQUIRE(sat[i] == std::clamp<int64_t>(s, INT32_MIN, INT32_MAX));
    REQUIRE(byte[i] == static_cast<uint32_t>(static_cast<int8_t>(a[i])));
    REQUIRE(ubyte[i] == (a[i] & 255));
    REQUIRE(sat_byte[i] == std::clamp<int64_t>(s, 0, 255));
    REQUIRE(sign[i] == static_cast<int32_t>(a[i]));
    REQUIRE(byte_float[i] == static_cast<float>(a[i] & 255));
  }
}

TEST_CASE("floats change width and round to whole numbers") {
  const auto a = interesting<double>(4);
  const auto f = evaluate<float>("cvt.rn.f32.f64 %d, %a;", a);
  const auto down = evaluate<float>("cvt.rm.f32.f64 %d, %a;", a);
  const auto x = interesting<float>(5);
  const auto whole = evaluate<float>("cvt.rni.f32.f32 %d, %a;", x);
  const auto unit = evaluate<float>("cvt.sat.f32.f32 %d, %a;", x);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]))
      continue;
    REQUIRE(raw(f[i]) == raw(static_cast<float>(a[i])));
    REQUIRE(static_cast<double>(down[i]) <= a[i]);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    if (!std::isnan(x[i]))
      REQUIRE(raw(whole[i]) == raw(std::nearbyint(x[i])));
    REQUIRE(unit[i] == (x[i] > 0 ? std::min(x[i], 1.0F) : 0.0F));
  }
}

TEST_CASE("tf32 keeps ten bits of mantissa") {
  const auto x = interesting<float>(6);
  const auto away = evaluate<uint32_t>("cvt.rna.tf32.f32 %d, %a;", x);
  for (size_t i = 0; i < x.size(); ++i) {
    REQUIRE((away[i] & 0x1fff) == 0);
    if (std::isnormal(x[i]) && std::fabs(x[i]) < 1e38F)
      REQUIRE(std::fabs(std::bit_cast<float>(away[i]) - x[i]) <= std::fabs(x[i]) * 0x1p-11F);
  }
}

namespace {

/// The value of an 8-bit float with that many explicit bits, whose smallest normal exponent is
/// `lowest`; NaN for what is no finite number.
double value_of(uint8_t code, int mantissa, int lowest) {
  const int exponent = (code & 0x7f) >> mantissa;
  const int fraction = code & ((1 << mantissa) - 1);
  const bool finite = mantissa == 3 ? (code & 0x7f) != 0x7f : exponent != 31;
  if (!finite)
    return std::numeric_limits<double>::quiet_NaN();
  const double size = exponent == 0
    ? std::ldexp(fraction, lowest - mantissa)
    : std::ldexp(fraction + (1 << mantissa), exponent - 1 + lowest - mantissa);
  return code & 0x80 ? -size : size;
}

void check_float8(const std::string& type, int mantissa, int lowest, uint8_t largest) {
  CAPTURE(type);
  std::vector<uint16_t> codes;
  for (int i = 0; i < 256; ++i)
    codes.push_back(static_cast<uint16_t>(i << 8 | (255 - i)));
  // To f32 by way of both halves.
  const auto high = evaluate<float>(
    "cvt.rn.f16x2." + type + " %q, %a; mov.b32 {%h1, %h2}, %q; cvt.f32.f16 %d, %h2;", codes);
  const auto low = evaluate<float>(
    "cvt.rn.f16x2." + type + " %q, %a; mov.b32 {%h1, %h2}, %q; cvt.f32.f16 %d, %h1;", codes);
  std::vector<float> values;
  for (int i = 0; i < 256; ++i) {
    CAPTURE(i);
    const double wanted = value_of(static_cast<uint8_t>(i), mantissa, lowest);
    const float got = high[static_cast<size_t>(i)];
    REQUIRE(
      std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(low[static_cast<size_t>(255 - i)]));
    if (std::isnan(wanted)) {
      REQUIRE_FALSE(std::isfinite(got));
    } else {
      REQUIRE(static_cast<double>(got) == wanted);
      values.push_back(got);
    }
  }
  // Back: each value is itself; one in the middle of two goes to the even code; what is too large
  // becomes the largest one.
  const auto back =
    evaluate<uint16_t>("cvt.rn.satfinite." + type + ".f32 %d, %a, 0f00000000;", values);
  std::vector<float> middles,
    beyond{1e30F, -1e30F, std::numeric_limits<float>::infinity(),
      std::numeric_limits<float>::quiet_NaN()};
  for (uint8_t code = 0; code < largest; ++code)
    middles.push_back(
      static_cast<float>((value_of(code, mantissa, lowest)
                           + value_of(static_cast<uint8_t>(code + 1), mantissa, lowest))
        / 2));
  const auto rounded =
    evaluate<uint16_t>("cvt.rn.satfinite." + type + ".f32 %d, 0f3F800000, %a;", middles);
  const auto clamped = evaluate<uint16_t>("cvt.rn.satfinite." + type + ".f32 %d, %a, %a;", beyond);
  for (size_t i = 0; i < values.size(); ++i)
    REQUIRE(value_of(static_cast<uint8_t>(back[i] >> 8), mantissa, lowest)
      == static_cast<double>(values[i]));
  for (size_t code = 0; code < middles.size(); ++code) {
    CAPTURE(code);
    REQUIRE((rounded[code] & 0xff) == code + code % 2);
  }
  const auto most = static_cast<uint16_t>(largest << 8 | largest);
  CHECK(clamped[0] == most);
  CHECK(clamped[1] == (most | 0x8080));
  CHECK(clamped[2] == most);
  CHECK((clamped[3] & 0x7f7f) == 0x7f7f);
  // By way of two halves.
  const auto from_halves = evaluate<uint16_t>("cvt.rn.f16.f32 %h1, %a; mov.b16 %h2, 0x3C00; "
                                              "mov.b32 %q, {%h1, %h2}; cvt.rn.satfinite."
      + type + ".f16x2 %d, %q;",
    values);
  for (size_t i = 0; i < values.size(); ++i)
    REQUIRE((from_halves[i] & 0xff) == back[i] >> 8);
}

} // namespace

TEST_CASE(
  "8-bit floats are converted exactly, to nearest even and with the largest value as limit") {
  check_float8("e4m3x2", 3, -6, 0x7e);
  check_float8("e5m2x2", 2, -14, 0x7b);
}

TEST_CASE("a conversion of 8-bit floats that PTX does not have is refused") {
  for (const char* text : {"cvt.f16x2.e4m3x2 %r1, %h1;", "cvt.rn.e4m3x2.f32 %h1, %f1, %f2;",
         "cvt.rn.f32.e4m3x2 %f1, %h1;", "cvt.rz.satfinite.e4m3x2.f32 %h1, %f1, %f2;"})
    CHECK_FALSE(gristmill::ptx::parse(entry(text)));
}

namespace {

/// The value of a code of 1 sign bit, `exponent` bits and the rest fraction, without infinity and
/// NaN.
double small_value(uint32_t code, int exponent, int fraction) {
  const auto e = static_cast<int>(code >> fraction & ((1U << exponent) - 1));
  const auto f = static_cast<int>(code & ((1U << fraction) - 1));
  const int bias = (1 << (exponent - 1)) - 1;
  const double magnitude = e == 0 ? std::ldexp(f, 1 - bias - fraction)
                                  : std::ldexp((1 << fraction) + f, e - bias - fraction);
  return code >> (exponent + fraction) & 1 ? -magnitude : magnitude;
}

/// The nearest code by looking at all of them; of two, the even one.
uint32_t nearest_code(double x, int exponent, int fraction) {
  const uint32_t codes = 1U << (exponent + fraction);
  if (std::isnan(x))
    return codes - 1;
  // What is larger than all of them, infinity included, is the largest.
  const double magnitude = std::min(std::fabs(x), small_value(codes - 1, exponent, fraction));
  uint32_t best = 0;
  for (uint32_t code = 1; code < codes; ++code) {
    const double now = std::fabs(magnitude - small_value(code, exponent, fraction));
    const double then = std::fabs(magnitude - small_value(best, exponent, fraction));
    if (now < then || (now == then && code % 2 == 0))
      best = code;
  }
  return best | (std::signbit(x) ? codes : 0);
}

} // namespace

TEST_CASE("floats of 4 and 6 bits are converted to the nearest value, and back exactly") {
  std::vector<float> a, b;
  for (int i = -700; i <= 700; ++i) {
    a.push_back(static_cast<float>(i) / 16);
    b.push_back(static_cast<float>(i * i % 353) / 32);
  }
  a.insert(a.end(), {1e30F, -INFINITY, NAN, -0.0F, 1e-30F});
  b.insert(b.end(), {-1e30F, INFINITY, -1.0F, 0.25F, 0.75F});
  struct form {
    std::string name;
    int exponent, fraction;
    uint32_t step;
  };
  for (const form& f : {form{"e2m1x2", 2, 1, 4}, {"e2m3x2", 2, 3, 8}, {"e3m2x2", 3, 2, 8}}) {
    CAPTURE(f.name);
    const bool nibbles = f.step == 4;
    const std::string d = nibbles ? "%x" : "%d";
    const std::string keep = nibbles ? "mov.b16 %h1, 0; cvt.u16.u8 %d, %x;" : "";
    const std::string head = nibbles ? ".reg .b8 %x; " : "";
    const auto codes = evaluate<uint16_t>(
      head + "cvt.rn.satfinite." + f.name + ".f32 " + d + ", %a, %b; " + keep, a, b);
    const auto positive = evaluate<uint16_t>(
      head + "cvt.rn.satfinite.relu." + f.name + ".f32 " + d + ", %a, %b; " + keep, a, b);
    std::vector<uint16_t> all;
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(a[i]);
      const uint32_t high = nearest_code(a[i], f.exponent, f.fraction);
      const uint32_t low = nearest_code(b[i], f.exponent, f.fraction);
      REQUIRE(codes[i] == (high << f.step | low));
      REQUIRE((positive[i] >> f.step) == (a[i] <= 0 ? 0 : static_cast<int>(high)));
    }
    const uint32_t count = 2U << (f.exponent + f.fraction);
    for (uint32_t code = 0; code < count; ++code)
      all.push_back(static_cast<uint16_t>(code << f.step | (count - 1 - code)));
    const auto halves = evaluate<uint32_t>(nibbles
        ? ".reg .b8 %x, %y; mov.b16 {%x, %y}, %a; cvt.rn.f16x2.e2m1x2 %d, %x;"
        : "cvt.rn.f16x2." + f.name + " %d, %a;",
      all);
    for (uint32_t code = 0; code < count; ++code) {
      const auto value = [&](uint32_t half) {
        const auto e = static_cast<int>(half >> 10 & 31);
        const double m =
          e == 0 ? std::ldexp(half & 1023, -24) : std::ldexp(1024 + (half & 1023), e - 25);
        return half & 0x8000 ? -m : m;
      };
      REQUIRE(value(halves[code] >> 16) == small_value(code, f.exponent, f.fraction));
      REQUIRE(
        value(halves[code] & 0xffff) == small_value(count - 1 - code, f.exponent, f.fraction));
    }
  }
}

TEST_CASE("scales are the power of two below or above, with the sign left out") {
  const std::vector<float> a{1, 1.5F, -3, 0, std::ldexp(1.0F, -127), std::ldexp(1.5F, -127),
    INFINITY, NAN, std::ldexp(1.9F, 127), std::ldexp(1.0F, 127)};
  const std::vector<uint16_t> below{127, 127, 128, 0, 0, 0, 254, 255, 254, 254};
  const std::vector<uint16_t> above{127, 128, 129, 0, 0, 1, 254, 255, 254, 254};
  CHECK(evaluate<uint16_t>("cvt.rz.satfinite.ue8m0x2.f32 %d, 0f00000000, %a;", a) == below);
  CHECK(evaluate<uint16_t>("cvt.rp.satfinite.ue8m0x2.f32 %d, 0f00000000, %a;", a) == above);
  CHECK(evaluate<uint16_t>("cvt.rp.ue8m0x2.f32 %d, 0f3F800000, %a;", a)[6] == 0x7fff);
  CHECK(evaluate<uint32_t>(
          "cvt.rn.bf16x2.ue8m0x2 %d, %a;", std::vector<uint16_t>{0x7f00, 0xff01, 0x80fe})
    == std::vector<uint32_t>{0x3f800040, 0x7fff0080, 0x40007f00});
}
