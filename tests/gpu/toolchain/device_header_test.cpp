#include "gpu/toolchain/device_header.hpp"
#include "tests/gpu/toolchain/header_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;

TEST_CASE("device code may include the usual names and not the parts behind them") {
  for (const char* name :
    {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_runtime.h", "cstdint", "cmath", "math.h",
      "stdint.h", "float.h", "limits.h", "assert.h", "type_traits", "limits", "mma.h",
      "cooperative_groups.h", "cooperative_groups/reduce.h", "cuda/barrier", "cuda/std/limits"})
    CHECK(is_device_header(name));
  CHECK_FALSE(is_device_header("gristmill/all.h"));
  CHECK_FALSE(is_device_header("vector"));
  CHECK_FALSE(is_device_header(""));
}

TEST_CASE("float mathematics") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"expf(a)", std::exp(1.5)}, {"expf(b)", std::exp(-2.25)}, {"expf(-200.f + c)", 0},
      {"expf(200.f + c)", INFINITY}, {"expf(88.f + c)", std::exp(88.3), 1e-5},
      {"expf(-87.f - c)", std::exp(-87.3), 1e-5}, {"expf(b - INFINITY)", 0},
      {"__expf(a)", std::exp(1.5)}, {"exp2f(a)", std::exp2(1.5)}, {"logf(a)", std::log(1.5)},
      {"__logf(a)", std::log(1.5)}, {"log2f(a)", std::log2(1.5)}, {"log10f(a)", std::log10(1.5)},
      {"log1pf(c)", std::log1p(0.3)}, {"expm1f(c)", std::expm1(0.3)}, {"tanhf(c)", std::tanh(0.3)},
      {"erff(c)", std::erf(0.3)}, {"erfcf(c)", std::erfc(0.3)},
      {"powf(a, b)", std::pow(1.5, -2.25)}, {"__powf(a, b)", std::pow(1.5, -2.25)},
      {"sinf(b)", std::sin(-2.25)}, {"cosf(b)", std::cos(-2.25)}, {"__sinf(c)", std::sin(0.3)},
      {"__cosf(c)", std::cos(0.3)}, {"tanf(c)", std::tan(0.3)},
      {"atan2f(a, b)", std::atan2(1.5, -2.25)}, {"sqrtf(a)", std::sqrt(1.5)},
      {"rsqrtf(a)", 1 / std::sqrt(1.5)}, {"fmaf(a, b, c)", 1.5 * -2.25 + 0.3}, {"fmaxf(a, b)", 1.5},
      {"fminf(a, b)", -2.25}, {"fmaxf(NAN, b)", -2.25}, {"fabsf(b)", 2.25}, {"floorf(b)", -3},
      {"ceilf(b)", -2}, {"truncf(b)", -2}, {"rintf(2.5f * a / a)", 2}, {"roundf(2.5f * a / a)", 3},
      {"fmodf(b, a)", -0.75}, {"copysignf(a, b)", -1.5}, {"a / b", 1.5 / -2.25},
      {"__fdividef(a, b)", 1.5 / -2.25}, {"__frcp_rn(a)", 1 / 1.5},
      {"__fsqrt_rn(a)", std::sqrt(1.5)}, {"__fadd_rn(a, b)", -0.75}, {"__fmul_rn(a, b)", -3.375},
      {"__fmaf_rn(a, b, c)", -3.075}, {"isnan(b * NAN)", 1}, {"isinf(b * INFINITY)", 1},
      {"isfinite(a)", 1}, {"__saturatef(b)", 0}, {"ldexpf(a, 5)", 48},
      {"normcdff(c)", 0.5 * std::erfc(-0.3 * std::sqrt(0.5))}, {"max(a, b)", 1.5}, {"abs(b)", 2.25},
      {"std::max(i, 3)", 12}, {"cbrtf(a)", std::cbrt(1.5)}});
}

TEST_CASE("double mathematics") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"exp(d)", std::exp(0.75)}, {"log(d)", std::log(0.75)}, {"sin(d)", std::sin(0.75)},
      {"pow(d, 2.5)", std::pow(0.75, 2.5)}, {"tanh(d)", std::tanh(0.75)},
      {"erf(d)", std::erf(0.75)}, {"sqrt(d)", std::sqrt(0.75)}, {"rsqrt(d)", 1 / std::sqrt(0.75)},
      {"fma(d, d, d)", 0.75 * 0.75 + 0.75}, {"fabs(-d)", 0.75}, {"floor(-d)", -1}, {"ceil(d)", 1},
      {"round(d)", 1}, {"fmax(d, 2.0)", 2}, {"max(d, 0.5)", 0.75}, {"isnan(d)", 0}, {"d / 3", 0.25},
      {"__dadd_rn(d, 1.0)", 1.75}, {"exp(static_cast<float>(d))", std::exp(0.75)}});
}

TEST_CASE("integer intrinsics, casts and conversions") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"__popc(u)", 13}, {"__popcll(0x100000001ull * u)", 26}, {"__clz(i)", 28},
      {"__clz(i - 12)", 32}, {"__clzll(static_cast<long long>(i))", 60}, {"__ffs(i)", 3},
      {"__ffs(i - 12)", 0}, {"__brev(u) >> 24", 0x2c},
      {"__byte_perm(u, 0, 0x4321) == 0x00f0f012u", 1}, {"__funnelshift_l(u, 1u, 4) == 0x1fu", 1},
      {"__funnelshift_r(u, 1u, 8) == 0x01f0f012u", 1}, {"__mul24(j, i)", -84},
      {"__umulhi(u, 16u)", 15}, {"__mulhi(j, 1 << 30)", -2}, {"__sad(j, i, 1u)", 20},
      {"min(i, j)", -7}, {"max(i, j)", 12}, {"abs(j)", 7}, {"__hadd(i, j)", 2},
      {"__dp4a(0x01020304, 0x01010101, i)", 22}, {"__float_as_int(a) == 0x3fc00000", 1},
      {"__int_as_float(0x40490fdb)", 3.14159274}, {"__uint_as_float(__float_as_uint(b))", -2.25},
      {"__double_as_longlong(d) == 0x3fe8000000000000ll", 1}, {"__float2int_rn(a)", 2},
      {"__float2int_rz(b)", -2}, {"__float2int_rd(b)", -3}, {"__float2int_ru(a)", 2},
      {"__int2float_rn(j)", -7}, {"__double2int_rz(d)", 0}, {"INT_MAX == 2147483647", 1},
      {"std::numeric_limits<float>::max() == FLT_MAX", 1}, {"std::is_same_v<int32_t, int>", 1},
      {"sizeof(long2) == 16 && alignof(float4) == 16 && sizeof(uint3) == 12", 1}});
}

TEST_CASE("half, bfloat16 and the 8-bit floats") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  check_all(*clang,
    {{"__half2float(__float2half_rn(c))", 0.300048828},
      {"__half2float(__hadd(__half(a), __half(b)))", -0.75},
      {"float(__half(a) * __half(b))", -3.375},
      {"float(__hfma(__half(a), __half(b), __half(1.f)))", -2.375},
      {"float(__half(a) / __half(b))", -0.66650390625}, {"__half(a) > __half(b)", 1},
      {"__low2float(__hadd2(__floats2half2_rn(a, b), __float2half2_rn(1.f)))", 2.5},
      {"__half22float2(__floats2half2_rn(a, b)).y", -2.25}, {"__hmax(__half(a), __half(b))", 1.5},
      {"float(hexp(__half(a)))", 4.48046875, 1e-3}, {"__half_as_ushort(__half(a)) == 0x3e00", 1},
      {"float(-__half(a))", -1.5}, {"__hisnan(__half(NAN))", 1}, {"__half2int_rn(__half(b))", -2},
      {"__bfloat162float(__float2bfloat16(c))", 0.30078125},
      {"float(__nv_bfloat16(a) + __nv_bfloat16(b))", -0.75},
      {"float(__hfma(__nv_bfloat16(a), __nv_bfloat16(b), __nv_bfloat16(1.f)))", -2.375},
      {"__bfloat1622float2(__floats2bfloat162_rn(a, b)).x", 1.5},
      {"__bfloat1622float2(__hmul2(__floats2bfloat162_rn(a, b), __float2bfloat162_rn(2.f))).y",
        -4.5},
      {"__nv_bfloat16(a) < __nv_bfloat16(b)", 0},
      {"__bfloat16_as_ushort(__nv_bfloat16(a)) == 0x3fc0", 1}, {"float(__nv_fp8_e4m3(c))", 0.3125},
      {"float(__nv_fp8_e4m3(1000.f * a))", 448}, {"float(__nv_fp8_e4m3(0.0117f * a))", 0.017578125},
      {"float(__nv_fp8_e4m3(0.0011f * a))", 0.001953125},
      {"float(__nv_fp8_e4m3(-15.9f * a / a))", -16}, {"float(__nv_fp8_e5m2(c))", 0.3125},
      {"float(__nv_fp8_e5m2(-60000.f * a / a))", -57344},
      {"float(__nv_fp8_e5m2(0.9f * a / a))", 0.875}, {"isnan(float(__nv_fp8_e4m3(b * NAN)))", 1}},
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n");
}

TEST_CASE("shuffles, votes, matches and reductions of a warp") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, R"(
    const unsigned all = 0xffffffffu;
    float* mine = out + lane * 16;
    mine[0] = __shfl_sync(all, static_cast<float>(lane), 5);
    mine[1] = __shfl_xor_sync(all, lane, 1);
    mine[2] = __shfl_down_sync(all, lane, 1);
    mine[3] = __shfl_up_sync(all, lane, 1);
    mine[4] = __shfl_xor_sync(all, lane, 4, 8);
    mine[5] = __shfl_sync(all, static_cast<double>(lane) + 0.5, 3);
    mine[6] = __shfl_down_sync(all, static_cast<long long>(lane) << 33, 2) >> 33;
    mine[7] = __popc(__ballot_sync(all, lane % 3 == 0));
    mine[8] = __any_sync(all, lane == 31) + 2 * __all_sync(all, lane < 32);
    mine[9] = __popc(__match_any_sync(all, lane / 8));
    mine[10] = __reduce_add_sync(all, lane) + __reduce_max_sync(all, static_cast<unsigned>(lane));
    mine[11] = __popc(__activemask());
    mine[12] = float(__shfl_xor_sync(all, __float2bfloat16(static_cast<float>(lane)), 2));
    mine[13] = __syncthreads_count(lane < 7) + 100 * __syncthreads_or(lane == 3);
    __syncwarp();
    int same = 0;
    mine[14] = __match_all_sync(all, 4, &same) == all && same;
    mine[15] = warpSize + static_cast<float>(blockDim.x) / 64;
  )",
    32 * 16);
  for (int lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    const float* mine = out.data() + lane * 16;
    CHECK(mine[0] == 5);
    CHECK(mine[1] == (lane ^ 1));
    CHECK(mine[2] == std::min(lane + 1, 31));
    CHECK(mine[3] == std::max(lane - 1, 0));
    CHECK(mine[4] == (lane ^ 4));
    CHECK(mine[5] == 3.5);
    CHECK(mine[6] == (lane < 30 ? lane + 2 : lane));
    CHECK(mine[7] == 11);
    CHECK(mine[8] == 3);
    CHECK(mine[9] == 8);
    CHECK(mine[10] == 496 + 31);
    CHECK(mine[11] == 32);
    CHECK(mine[12] == (lane ^ 2));
    CHECK(mine[13] == 107);
    CHECK(mine[14] == 1);
    CHECK(mine[15] == 32.5);
  }
}

TEST_CASE("atomics of every kind and type") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, R"(
    __shared__ int i; __shared__ unsigned u, bits, mask, flip, low, high, wheel; __shared__ float f;
    __shared__ double d; __shared__ unsigned long long big, biggest; __shared__ int won; __shared__ __half2 h;
    if (lane == 0) {
      i = 5; u = 0; bits = 0; mask = 0xffffffffu; flip = 0; low = 100; high = 0; wheel = 0; f = 0; d = 0;
      big = 0; biggest = 0; won = -1; h = __float2half2_rn(0.f);
    }
    __syncthreads();
    atomicAdd(&i, -1); atomicAdd(&u, 2u); atomicOr(&bits, 1u << lane); atomicAnd(&mask, ~(1u << lane));
    atomicXor(&flip, 3u); atomicMin(&low, 7u + lane); atomicMax(&high, 7u + lane); atomicInc(&wheel, 9u);
    atomicAdd(&f, 0.5f); atomicAdd(&d, 0.25); atomicAdd(&big, 1ull << 33); atomicMax(&biggest, 1ull << lane);
    atomicCAS(&won, -1, lane); atomicAdd(&h, __floats2half2_rn(1.f, 2.f));
    __syncthreads();
    if (lane == 0) {
      out[0] = i; out[1] = u; out[2] = bits == 0xffffffffu; out[3] = mask; out[4] = flip; out[5] = low;
      out[6] = high; out[7] = wheel; out[8] = f; out[9] = d; out[10] = big >> 33; out[11] = biggest >> 24;
      out[12] = won; out[13] = __high2float(h);
      out[14] = atomicExch(&f, 3.f) + f;
      out[15] = atomicSub(&u, 60u) + u;
    }
  )",
    16);
  const float want[] = {-27, 64, 1, 0, 0, 7, 38, 2, 16, 8, 32, 128, 0, 64, 19, 68};
  for (size_t i = 0; i < 16; ++i) {
    CAPTURE(i);
    CHECK(out[i] == want[i]);
  }
}

TEST_CASE("hinted loads and stores, address spaces, asynchronous copies and geometry") {
  const auto clang = clang_or_skip();
  if (!clang)
    return;
  const auto out = run_block(*clang, R"(
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ __align__(16) float tile[128];
    __stcs(out + lane, static_cast<float>(lane));
    __syncthreads();
    const float4 v = __ldcs(reinterpret_cast<const float4*>(out) + lane % 8);
    if (lane < 8)
      __pipeline_memcpy_async(tile + lane * 4, out + lane * 4, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    const float sum = v.x + v.y + v.z + v.w + __ldg(out) + __ldcg(out + 1);
    __syncthreads();
    out[32 + lane] = tile[lane];
    __stcg(out + 64 + lane, sum);
    const dim3 block = blockDim; const uint3 thread = threadIdx;
    out[96 + lane] = block.x + thread.x + gridDim.x + blockIdx.y + (__cvta_generic_to_shared(tile) < 100000)
        + (__isShared(tile) ? 1 : 0) + (dynamic == nullptr ? 100 : 0);
    __threadfence();
    if (out == nullptr) printf("%d %f\n", lane, sum);
    assert(lane < 32);
  )",
    128);
  for (int lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(out[static_cast<size_t>(lane)] == lane);
    CHECK(out[static_cast<size_t>(32 + lane)] == lane);
    CHECK(out[static_cast<size_t>(64 + lane)] == 16 * (lane % 8) + 6 + 1);
    CHECK(out[static_cast<size_t>(96 + lane)] == 32 + lane + 1 + 1 + 1);
  }
}
