// The rarer functions of mathematics and of small integers in words, run on the mock.
#include "tests/gpu/toolchain/header_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

TEST_CASE("parts of numbers, whole turns, lengths and rounding to integers") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"sinpif(c)", std::sin(0.3 * M_PI)}, {"cospi(d)", std::cos(0.75 * M_PI)},
      {"sinpi(1e9 + d + 0.25)", 0}, {"cospif(1e6f * a)", 1},
      {"ldexpf(a, -140) * 0x1p100f * 0x1p40f", 1.5}, {"ldexpf(a, 200)", INFINITY},
      {"ldexp(d, 1000) / ldexp(1.0, 999)", 1.5}, {"ldexp(ldexp(d, -1074) , 1073)", 0.5},
      {"frexpf(b, &x)", -0.5625}, {"frexp(d * 16, &x) + x", 4.75}, {"ilogbf(b)", 1},
      {"ilogb(d * 0x1p-1060)", -1061}, {"logb(d)", -1}, {"modff(b, &w)", -0.25},
      {"modf(d * 5, &v) + v", 3.75}, {"nextafterf(a, 2.f) > a ? 1 : 0", 1},
      {"(nextafter(d, 0.0) - d) * 0x1p53", -1}, {"fdimf(a, b)", 3.75}, {"fdim(d, 1.0)", 0},
      {"lrintf(b)", -2}, {"lround(2.5 * d / d)", 3}, {"llrint(-d)", -1}, {"llroundf(b)", -2},
      {"norm3df(a, b, c)", std::sqrt(1.5 * 1.5 + 2.25 * 2.25 + 0.09)},
      {"rnorm4d(d, d, d, d)", 1 / 1.5}, {"rhypotf(3e30f * a / a, 4e30f) * 5e30f", 1},
      {"rcbrtf(a)", 1 / std::cbrt(1.5)}, {"isnormal(a * 1e-40f) ? 1 : 0", 0},
      {"signbit(-d) ? 1 : 0", 1}, {"exp10(a)", std::pow(10, 1.5)}},
    "__device__ int x; __device__ float w; __device__ double v;");
}

TEST_CASE("the normal distribution, the gamma function and their inverses") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  // Known to more digits than are compared: erf(0.5) and the like, by the host's library.
  check_all(*clang,
    {{"erfinvf(c)", 0.27246271472675435}, {"erf(erfinv(d))", 0.75},
      {"erf(erfinv(d * 1e-3))", 0.75e-3}, {"erfc(erfcinv(d * 1e-20)) * 1e20", 0.75},
      {"erfcinv(1 + d)", -0.81341985759761}, {"erfcxf(a)", std::exp(2.25) * std::erfc(1.5)},
      {"erfcx(d * 40)", 0.0187958888614}, {"normcdfinv(d)", 0.67448975019608},
      {"normcdf(normcdfinvf(c))", 0.3}, {"erfinv(d / d)", INFINITY},
      {"isnan(erfinv(2 * d)) ? 1 : 0", 1}, {"lgammaf(a)", std::lgamma(1.5)},
      {"lgamma(d * 40)", std::lgamma(30)}, {"lgamma(-d)", std::lgamma(-0.75)},
      {"lgamma(d - d)", INFINITY}, {"tgammaf(a)", std::tgamma(1.5)}});
}

TEST_CASE("conversions and operations with a rounding in their name") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"__float2uint_rd(a)", 1}, {"__float2uint_ru(a)", 2}, {"__float2uint_rz(b)", 0},
      {"__float2ll_ru(b)", -2}, {"__double2ull_rn(d)", 1}, {"__double2int_rd(-d)", -1},
      {"__int2float_rz(16777217 + i - 12)", 16777216},
      {"__int2float_ru(16777217 + i - 12)", 16777218},
      {"(__double2float_rd(1.0 + d * 1e-9) - 1.f)", 0},
      {"(__double2float_ru(1.0 + d * 1e-9) - 1.f) * 0x1p23f", 1},
      {"(__fadd_ru(1.f, c * 1e-9f) - 1.f) * 0x1p23f", 1}, {"__fadd_rd(1.f, c * 1e-9f) - 1.f", 0},
      {"__fsub_rn(a, b)", 3.75}, {"__dsub_rd(d, 1.0)", -0.25}, {"__ddiv_rn(d, 3.0)", 0.25},
      {"__drcp_ru(d * 4)", 1 / 3.0}, {"__dsqrt_rz(d * 3)", 1.5},
      {"__dmul_rd(d, d) + __fma_ru(d, d, d)", 0.5625 + 1.3125}});
}

TEST_CASE("small integers in words: sums, differences, means, limits and comparisons") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  // p and q are opaque words, so that nothing is folded.
  check_all(*clang,
    {{"__vadd4(p, q) == 0x00807f02u", 1}, {"__vaddss4(p, q) == 0x007f7f02u", 1},
      {"__vaddus4(p, q) == 0xff807f02u", 1}, {"__vsub4(p, q) == 0xfe7e7f00u", 1},
      {"__vsubus4(p, q) == 0xfe7e7f00u", 1}, {"__vsubss2(p, q) == 0xfe7e7f00u", 1},
      {"__vabs4(p) == 0x017f7f01u", 1}, {"__vabsss2(0x80000001u + i - 12) == 0x7fff0001u", 1},
      {"__vneg2(0x00010002u + i - 12) == 0xfffffffeu", 1}, {"__vavgu4(p, q) == 0x80404001u", 1},
      {"__vavgs2(0xffff0003u + i - 12, 0xfffe0004u) == 0xfffe0004u", 1},
      {"__vhaddu4(p, q) == 0x80403f01u", 1}, {"__vmaxs4(p, q) == 0x017f7f01u", 1},
      {"__vminu4(p, q) == 0x01010001u", 1}, {"__vcmpgts4(p, q) == 0x00ffff00u", 1},
      {"__vcmpgtu4(p, q) == 0xffffff00u", 1}, {"__vseteq4(p, q) == 0x00000001u", 1},
      {"__vsadu4(p, q)", 254 + 126 + 127}, {"__vsads4(p, q)", 2 + 126 + 127},
      {"__vabsdiffu4(p, q) == 0xfe7e7f00u", 1}, {"__dp4a(p, q, 5u)", 255 + 127 + 1 + 5},
      {"__dp4a(int(p), int(q), 5)", -1 + 127 + 1 + 5},
      {"__dp2a_lo(0x0002fffd + i - 12, 0x01020304 + i - 12, i)", -3 * 4 + 2 * 3 + 12},
      {"__dp2a_hi(0x00020003u + i - 12, 0x01020304u, u - u)", 3 * 2 + 2 * 1},
      {"__viaddmax_s32(i, j, 3)", 5}, {"__viaddmin_s32_relu(i, j, -3)", 0},
      {"__vimax3_u32(u, 3u, 7u) == u", 1},
      {"__viaddmax_s16x2(0x0001fff0u + i - 12, 0x00020001u, 0x0001fff0u) == 0x0003fff1u", 1},
      {"__vibmax_s32(i, j, &first) + (first ? 100 : 0)", 112}, {"__fns(p, 8, 2)", 9},
      {"__fns(p, 9, -1)", 9}, {"__fns(0u, 0, 1) == 0xffffffffu", 1}, {"__uhadd(u, u) == u", 1},
      {"__urhadd(3u + i - 12, 4u)", 4}, {"umin(u, 3u) + umax(1u, 2u)", 5}},
    "__device__ bool first; __device__ volatile unsigned pv = 0xff7f7f01u, qv = 0x01010001u;\n"
    "#define p static_cast<unsigned>(pv)\n#define q static_cast<unsigned>(qv)\n");
}
