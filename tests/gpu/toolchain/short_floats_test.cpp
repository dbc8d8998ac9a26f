// cuda_fp16.h, cuda_bf16.h and cuda_fp8.h of the clang path, run on the mock.
#include "tests/gpu/toolchain/header_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

namespace {

/// The same lines for both types of 16 bits.
void check_both(const clang_command& clang, std::vector<std::string> lines) {
  std::string body = "if (lane == 0) { int at = 0;\n";
  for (const char* type : {"__half", "__nv_bfloat16"}) {
    body += "{ typedef " + std::string(type) + " H; typedef " + type
      + "2 H2; H one(1.f), two(2.f), "
        "third(-3.f), none(f); H2 p(one, none), q(two, two), r(one, third);\n";
    for (const std::string& line : lines)
      body += "out[at++] = (" + line + ") ? 1.f : 0.f;\n";
    body += "}\n";
  }
  const auto out = run_block(clang, "volatile float nan = NAN; float f = nan;\n" + body + "}",
    2 * lines.size(), "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n");
  for (size_t i = 0; i < out.size(); ++i) {
    CAPTURE(lines[i % lines.size()]);
    CHECK(out[i] == 1);
  }
}

} // namespace

TEST_CASE("comparisons of 16-bit floats are false for NaN when ordered and true when not") {
  if (const auto clang = clang_or_skip())
    check_both(*clang,
      {"!__heq(one, none)", "!__hne(one, none)", "__hne(one, two)", "!__hlt(none, one)",
        "!__hge(none, one)", "__hequ(one, none)", "__hneu(one, none)", "__hltu(one, none)",
        "__hleu(none, none)", "__hgtu(two, one)", "!__hgtu(one, two)", "!__hgeu(one, two)",
        "one != none", "!(one == none)", "__hltu(one, two) && __hlt(one, two)",
        "float(__heq2(p, p).x) == 1 && float(__heq2(p, p).y) == 0", "!__hbeq2(p, p)",
        "__hbequ2(p, p)", "__hbeq2(q, q)", "__hlt2_mask(r, q) == 0xffffffffu",
        "__hgt2_mask(q, p) == 0xffffu", "__hgtu2_mask(q, p) == 0xffffffffu",
        "float(__hisnan2(p).y) == 1 && float(__hisnan2(p).x) == 0", "__hisnan(none)",
        "__hisinf(H(INFINITY)) == 1 && __hisinf(H(-INFINITY)) == -1 && __hisinf(one) == 0"});
}

TEST_CASE("limits, saturation, relu and exact rounding of 16-bit floats") {
  if (const auto clang = clang_or_skip())
    check_both(*clang,
      {"float(__hmax(one, none)) == 1", "float(__hmin(none, third)) == -3",
        "__hisnan(__hmax_nan(one, none))", "__hisnan(__hmin_nan(one, none))",
        "float(__hmax2(p, q).x) == 2 && float(__hmax2(p, q).y) == 2",
        "__hisnan(__hmin2_nan(p, q).y) && float(__hmin2_nan(p, q).x) == 1",
        "float(__hadd_sat(one, two)) == 1", "float(__hmul_sat(one, third)) == 0",
        "float(__hsub_sat(one, none)) == 0", "float(__hfma_sat(two, two, third)) == 1",
        "float(__hfma_relu(two, third, one)) == 0", "float(__hfma_relu(two, two, one)) == 5",
        "float(__hfma2_relu(q, r, r).x) == 3 && float(__hfma2_relu(q, r, r).y) == 0",
        "float(__hadd_rn(one, two)) == 3", "float(__hmul2_rn(q, r).y) == -6",
        "float(__hcmadd(r, H2(two, one), q).x) == 7 && float(__hcmadd(r, H2(two, one), q).y) == -3",
        "float(__habs(third)) == 3", "float(__hneg2(r).y) == 3", "float(++one) == 2",
        "float(one--) == 2 && float(one) == 1", "float(+third) == -3"});
}

TEST_CASE("conversions of 16-bit floats to and from integers round as their name says") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"__half2int_rn(__half(2.5f * a / a))", 2}, {"__half2int_ru(__half(b))", -2},
      {"__half2int_rd(__half(b))", -3}, {"__half2short_rz(__half(65504.f * a / a))", 32767},
      {"__half2ushort_rn(__half(b))", 0}, {"__half2uchar_rz(__half(300.f * a))", 255},
      {"__half2ull_rn(__half(2048.f * a / a))", 2048}, {"__half2ll_rd(__half(b))", -3},
      {"float(__int2half_rn(2049 + i - 12))", 2048}, {"float(__int2half_ru(2049 + i - 12))", 2050},
      {"float(__int2half_rz(-2051 + i - 12))", -2050},
      {"float(__uint2half_rd(4097u + u - u))", 4096}, {"float(__short2half_rn(j))", -7},
      {"float(__int2bfloat16_rn(257 + i - 12))", 256},
      {"float(__int2bfloat16_ru(257 + i - 12))", 258},
      {"float(__int2bfloat16_rd(-257 + i - 12))", -258},
      // Twice rounded, by way of a float, this would be 17039360.
      {"float(__ll2bfloat16_rn(16973823ll + i - 12))", 16908288},
      {"float(__ull2bfloat16_ru(16777217ull + i - 12))", 16908288},
      {"float(__float2bfloat16_ru(c))", 0.30078125}, {"float(__float2bfloat16_rd(c))", 0.298828125},
      {"float(__float2bfloat16_rz(-c))", -0.298828125},
      {"float(__float2half_ru(c))", 0.300048828125}, {"float(__float2half_rd(c))", 0.2998046875},
      {"__bfloat162int_rz(__nv_bfloat16(b))", -2},
      {"__bfloat162uint_rn(__nv_bfloat16(300.f * a / a))", 300},
      {"float(__nv_bfloat16(1.00390625 + d * 1e-12))", 1.0078125},
      {"float(__lows2half2(__half2(1.f, 2.f), __half2(3.f, 4.f)).y)", 3},
      {"float(__highs2bfloat162(__nv_bfloat162(1.f, 2.f), __nv_bfloat162(3.f, 4.f)).x)", 2},
      {"float(__lowhigh2highlow(__half2(1.f, 2.f)).x)", 2},
      {"float(__high2half2(__half2(1.f, 2.f)).x)", 2}},
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n");
}

TEST_CASE("mathematics of 16-bit floats is right to their last bit or two") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  std::vector<expectation> all;
  const std::vector<std::pair<std::string, double>> lines{{"exp", std::exp(1.5)},
    {"exp2", std::exp2(1.5)}, {"exp10", std::pow(10, 1.5)}, {"log", std::log(1.5)},
    {"log2", std::log2(1.5)}, {"log10", std::log10(1.5)}, {"sqrt", std::sqrt(1.5)},
    {"rsqrt", 1 / std::sqrt(1.5)}, {"rcp", 1 / 1.5}, {"sin", std::sin(1.5)}, {"cos", std::cos(1.5)},
    {"tanh", std::tanh(1.5)}, {"floor", 1}, {"ceil", 2}, {"rint", 2}, {"trunc", 1},
    {"tanh_approx", std::tanh(1.5)}};
  std::vector<std::string> kept;
  for (const auto& [name, value] : lines) {
    kept.push_back("float(h" + name + "(__half(a)))");
    kept.push_back("float(h2" + name + "(__nv_bfloat162(a, a)).y)");
  }
  for (size_t i = 0; i < kept.size(); ++i)
    all.push_back({kept[i].c_str(), lines[i / 2].second, i % 2 == 0 ? 1e-3 : 5e-3});
  all.push_back({"float(hsin(__half(1000.f * a)))", std::sin(1500.0), 1e-3});
  all.push_back({"float(htanh(__half(0.05f * a)))", std::tanh(0.075), 1e-4});
  all.push_back({"float(htanh(__half(-30.f * a)))", -1});
  check_all(*clang, all, "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n");
}

TEST_CASE("the 8-bit floats: saturation or not, pairs, fours, integers and scale factors") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"__nv_cvt_float_to_fp8(500.f * a, __NV_SATFINITE, __NV_E4M3)", 0x7e},
      {"__nv_cvt_float_to_fp8(500.f * a, __NV_NOSAT, __NV_E4M3)", 0x7f},
      {"__nv_cvt_float_to_fp8(464.f * a / a, __NV_NOSAT, __NV_E4M3)", 0x7e},
      {"__nv_cvt_float_to_fp8(-1e6f * a, __NV_NOSAT, __NV_E5M2)", 0xfc},
      {"__nv_cvt_float_to_fp8(-1e6f * a, __NV_SATFINITE, __NV_E5M2)", 0xfb},
      {"__nv_cvt_float_to_fp8(b * NAN, __NV_SATFINITE, __NV_E5M2)", 0x7f},
      {"__nv_cvt_float_to_fp8(c, __NV_NOSAT, __NV_E4M3)", 0x2a},
      {"__nv_cvt_double_to_fp8(d, __NV_SATFINITE, __NV_E5M2)", 0x3a},
      {"__nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3)", 0xc13c},
      {"float2(__nv_fp8x2_e5m2(make_float2(a, b))).y", -2},
      {"float(__half2(__nv_fp8x2_e4m3(make_float2(a, b))).x)", 1.5},
      {"float4(__nv_fp8x4_e4m3(make_float4(a, b, c, 0.f))).y", -2.25},
      {"float4(__nv_fp8x4_e4m3(make_float4(a, b, c, 17.f * a))).w", 26},
      {"float(__nv_fp8_e4m3(i))", 12}, {"int(__nv_fp8_e4m3(b))", -2},
      {"unsigned(__nv_fp8_e5m2(b))", 0}, {"bool(__nv_fp8_e5m2(0.f * a)) ? 1 : 0", 0},
      {"float(__nv_bfloat16(__nv_fp8_e5m2(a)))", 1.5}, {"float(__nv_fp8_e8m0(a))", 2},
      {"__nv_fp8_e8m0(b).__x", 129},
      {"float(__half(__nv_cvt_fp8_to_halfraw(0x01, __NV_E4M3)))", 0.001953125},
      {"isnan(float(__half(__nv_cvt_fp8_to_halfraw(0x7f, __NV_E4M3)))) ? 1 : 0", 1}},
    "#include <cuda_fp8.h>\n");
}

TEST_CASE("16-bit floats are shuffled, added to atomically, and loaded with hints") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, R"(
    __shared__ __half h[2]; __shared__ __half2 h2; __shared__ __nv_bfloat16 g[2]; __shared__ __nv_bfloat162 g2;
    if (lane == 0) { h[0] = h[1] = __half(0.f); g[0] = g[1] = __nv_bfloat16(0.f); h2 = __half2(0.f, 0.f); g2 = __nv_bfloat162(0.f, 0.f); }
    __syncthreads();
    atomicAdd(&h[1], __half(0.5f)); atomicAdd(&g[1], __nv_bfloat16(0.5f));
    atomicAdd(&h2, __half2(1.f, 2.f)); atomicAdd(&g2, __nv_bfloat162(1.f, 2.f));
    __syncthreads();
    out[lane] = float(__shfl_down_sync(0xffffffffu, __nv_bfloat162(float(lane), 1.f), 1).x);
    if (lane == 0) {
      out[32] = float(h[1]); out[33] = float(g[1]); out[34] = float(h2.y); out[35] = float(g2.y);
      out[36] = float(h[0]) + float(g[0]);
      __half* words = reinterpret_cast<__half*>(out + 38);
      __stcg(words, __half(3.f)); __stwt(words + 1, __half(4.f));
      __threadfence();
      out[37] = float(__ldcg(words)) + float(__ldcv(reinterpret_cast<__half2*>(words)).y);
    }
  )",
    39, "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n");
  for (size_t lane = 0; lane < 31; ++lane)
    CHECK(out[lane] == static_cast<float>(lane + 1));
  CHECK(out[32] == 16);
  CHECK(out[33] == 16);
  CHECK(out[34] == 64);
  CHECK(out[35] == 64);
  CHECK(out[36] == 0);
  CHECK(out[37] == 7);
}
