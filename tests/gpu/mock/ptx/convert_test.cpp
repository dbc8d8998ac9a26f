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
      REQUIRE(d[i] == clamp<D>(round(static_cast<double>(a[i]))));
    }
  }
}

} // namespace

TEST_CASE("floats become integers by the given rounding, clamped, and NaN becomes 0") {
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
    REQUIRE((away[i] & 0x1fff) == (std::isnan(x[i]) ? 0x1fffU : 0U));
    if (std::isnormal(x[i]) && std::fabs(x[i]) < 1e38F)
      REQUIRE(std::fabs(std::bit_cast<float>(away[i]) - x[i]) <= std::fabs(x[i]) * 0x1p-11F);
  }
}
