// What the assembler makes of one PTX instruction, or the compiler of one call of the math library:
// several instructions, on several pipes. Each is applied to 1 and to 9 independent values by one
// warp a multiprocessor; ncu counts both, and an eighth of their difference is one application
// (`expansion_table.py`). Its latency is measured here, in a chain through one value.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

constexpr int chain = 64;

// The name is the text of the PTX instruction, as the mock's interpreter reads it.
#define EXPANDS(ID, TEXT, T, ...)                                                                  \
  struct ID {                                                                                      \
    using type = T;                                                                                \
    static constexpr const char* name = TEXT;                                                      \
    static __device__ __forceinline__ void run(T& x, T y) { __VA_ARGS__; }                         \
  };
#define UNARY(ID, TEXT, T, LETTER) EXPANDS(ID, TEXT, T, asm volatile(TEXT " %0, %0;" : "+" LETTER(x)))
#define BINARY(ID, TEXT, T, LETTER)                                                                \
  EXPANDS(ID, TEXT, T, asm volatile(TEXT " %0, %0, %1;" : "+" LETTER(x) : LETTER(y)))
#define TERNARY(ID, TEXT, T, LETTER)                                                               \
  EXPANDS(ID, TEXT, T, asm volatile(TEXT " %0, %0, %1, %0;" : "+" LETTER(x) : LETTER(y)))
// Into another type of 32 bits, whose bits `x` gets.
#define CONVERTS(ID, TEXT, FROM, LETTER, TO, TO_LETTER, BITS)                                      \
  EXPANDS(ID, TEXT, FROM, TO to; asm volatile(TEXT " %0, %1;" : "=" TO_LETTER(to) : LETTER(x));    \
          x = BITS(to))
#define PACKS(ID, TEXT)                                                                            \
  EXPANDS(ID, TEXT, float, uint32_t to;                                                            \
          asm volatile(TEXT " %0, %1, %2;" : "=r"(to) : "f"(x), "f"(y)); x = __uint_as_float(to))
// The lower half of a register, without a move: what a front end makes of the first of a pair.
#define UNPACKS(ID, TEXT)                                                                          \
  EXPANDS(ID, TEXT, uint32_t, float to;                                                            \
          asm volatile("{.reg .b16 l, h; mov.b32 {l, h}, %1; " TEXT " %0, l;}"                     \
                       : "=f"(to) : "r"(x));                                                       \
          x = __float_as_uint(to))
#define CALL(ID, F) EXPANDS(ID##_call, "call." #F, float, x = F(x))
#define CALL_OF_TWO(ID, F) EXPANDS(ID##_call, "call." #F, float, x = F(x, y))

// What stands around each: the loads, and what keeps the results.
EXPANDS(nothing_u32, "nothing.u32", uint32_t, asm volatile("" : "+r"(x)))
EXPANDS(nothing_f32, "nothing.f32", float, asm volatile("" : "+f"(x)))
EXPANDS(nothing_u64, "nothing.u64", uint64_t, asm volatile("" : "+l"(x)))
EXPANDS(nothing_f64, "nothing.f64", double, asm volatile("" : "+d"(x)))

BINARY(add_u32, "add.u32", uint32_t, "r")
BINARY(mul_lo_u32, "mul.lo.u32", uint32_t, "r")
BINARY(mul_hi_u32, "mul.hi.u32", uint32_t, "r")
BINARY(min_u32, "min.u32", uint32_t, "r")
BINARY(div_u32, "div.u32", uint32_t, "r")
BINARY(rem_u32, "rem.u32", uint32_t, "r")
BINARY(div_s32, "div.s32", int32_t, "r")
BINARY(rem_s32, "rem.s32", int32_t, "r")
BINARY(add_u64, "add.u64", uint64_t, "l")
BINARY(mul_lo_u64, "mul.lo.u64", uint64_t, "l")
BINARY(mul_hi_u64, "mul.hi.u64", uint64_t, "l")
BINARY(min_u64, "min.u64", uint64_t, "l")
BINARY(div_u64, "div.u64", uint64_t, "l")
BINARY(rem_u64, "rem.u64", uint64_t, "l")
BINARY(div_s64, "div.s64", int64_t, "l")
BINARY(rem_s64, "rem.s64", int64_t, "l")
TERNARY(mad_lo_u64, "mad.lo.u64", uint64_t, "l")
UNARY(popc_b32, "popc.b32", uint32_t, "r")
UNARY(clz_b32, "clz.b32", uint32_t, "r")
UNARY(brev_b32, "brev.b32", uint32_t, "r")
EXPANDS(bfe_u32, "bfe.u32", uint32_t, asm volatile("bfe.u32 %0, %0, %1, 5;" : "+r"(x) : "r"(y)))

BINARY(add_f32, "add.f32", float, "f")
BINARY(min_f32, "min.f32", float, "f")
BINARY(div_rn_f32, "div.rn.f32", float, "f")
BINARY(div_full_f32, "div.full.f32", float, "f")
BINARY(div_approx_f32, "div.approx.f32", float, "f")
BINARY(div_approx_ftz_f32, "div.approx.ftz.f32", float, "f")
UNARY(rcp_rn_f32, "rcp.rn.f32", float, "f")
UNARY(rcp_approx_f32, "rcp.approx.f32", float, "f")
UNARY(rcp_approx_ftz_f32, "rcp.approx.ftz.f32", float, "f")
UNARY(sqrt_rn_f32, "sqrt.rn.f32", float, "f")
UNARY(sqrt_approx_f32, "sqrt.approx.f32", float, "f")
UNARY(sqrt_approx_ftz_f32, "sqrt.approx.ftz.f32", float, "f")
UNARY(rsqrt_approx_f32, "rsqrt.approx.f32", float, "f")
UNARY(rsqrt_approx_ftz_f32, "rsqrt.approx.ftz.f32", float, "f")
UNARY(ex2_approx_f32, "ex2.approx.f32", float, "f")
UNARY(ex2_approx_ftz_f32, "ex2.approx.ftz.f32", float, "f")
UNARY(lg2_approx_f32, "lg2.approx.f32", float, "f")
UNARY(lg2_approx_ftz_f32, "lg2.approx.ftz.f32", float, "f")
UNARY(sin_approx_f32, "sin.approx.f32", float, "f")
UNARY(cos_approx_f32, "cos.approx.f32", float, "f")
UNARY(tanh_approx_f32, "tanh.approx.f32", float, "f")
BINARY(add_f64, "add.f64", double, "d")
BINARY(div_rn_f64, "div.rn.f64", double, "d")
UNARY(rcp_rn_f64, "rcp.rn.f64", double, "d")
UNARY(sqrt_rn_f64, "sqrt.rn.f64", double, "d")

CONVERTS(cvt_f32_u32, "cvt.rn.f32.u32", uint32_t, "r", float, "f", __float_as_uint)
CONVERTS(cvt_f32_s32, "cvt.rn.f32.s32", uint32_t, "r", float, "f", __float_as_uint)
CONVERTS(cvt_u32_f32, "cvt.rzi.u32.f32", float, "f", uint32_t, "r", __uint_as_float)
CONVERTS(cvt_s32_f32, "cvt.rzi.s32.f32", float, "f", uint32_t, "r", __uint_as_float)
CONVERTS(cvt_rni_s32_f32, "cvt.rni.s32.f32", float, "f", uint32_t, "r", __uint_as_float)
PACKS(cvt_bf16x2, "cvt.rn.bf16x2.f32")
PACKS(cvt_f16x2, "cvt.rn.f16x2.f32")
UNPACKS(cvt_f32_f16, "cvt.f32.f16")
UNPACKS(cvt_f32_bf16, "cvt.f32.bf16")
UNARY(cvt_rni_f32, "cvt.rni.f32.f32", float, "f")
EXPANDS(cvt_f64_f32, "cvt.f64.f32", double, {
  const auto f = static_cast<float>(__double2hiint(x));
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(x) : "f"(f));
})

CALL(exp, expf)
CALL(exp2, exp2f)
CALL(exp10, exp10f)
CALL(expm1, expm1f)
CALL(log, logf)
CALL(log2, log2f)
CALL(log10, log10f)
CALL(log1p, log1pf)
CALL(sqrt, sqrtf)
CALL(rsqrt, rsqrtf)
CALL(cbrt, cbrtf)
CALL(rcbrt, rcbrtf)
CALL(sin, sinf)
CALL(cos, cosf)
CALL(tan, tanf)
CALL(asin, asinf)
CALL(acos, acosf)
CALL(atan, atanf)
CALL(sinh, sinhf)
CALL(cosh, coshf)
CALL(tanh, tanhf)
CALL(asinh, asinhf)
CALL(acosh, acoshf)
CALL(atanh, atanhf)
CALL(erf, erff)
CALL(erfc, erfcf)
CALL(tgamma, tgammaf)
CALL(floor, floorf)
CALL(ceil, ceilf)
CALL(trunc, truncf)
CALL(round, roundf)
CALL(rint, rintf)
CALL(sinpi, sinpif)
CALL(cospi, cospif)
CALL(normcdf, normcdff)
CALL_OF_TWO(pow, powf)
CALL_OF_TWO(atan2, atan2f)
CALL_OF_TWO(fmod, fmodf)
CALL_OF_TWO(hypot, hypotf)
CALL_OF_TWO(fdim, fdimf)

/// Floats lie in (0.05, 0.95), where every function is defined and none takes a rare path;
/// integers are random, the second operand smaller.
template <class T>
void fill(T* device, size_t count, int bits) {
  std::mt19937_64 random(7);
  std::vector<T> values(count);
  for (T& value : values)
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(0.05 + 0.9 * std::uniform_real_distribution<>()(random));
    else
      value = static_cast<T>((random() >> (64 - bits)) | 1);
  CALIBRATION_CUDA(
    cudaMemcpy(device, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
}

template <class Op, int N>
__global__ void expand(const typename Op::type* x, const typename Op::type* y, typename Op::type* to) {
  typename Op::type values[N];
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] = x[threadIdx.x + i * 32];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    Op::run(values[i], y[threadIdx.x + i * 32]);
    to[threadIdx.x + i * 32] = values[i];
  }
}

/// A zero that the compiler does not know brings each result back to where it began: the functions are
/// asked at one place, and each waits for the one before.
template <class Op>
__global__ void in_a_chain(uint64_t* cycles, const typename Op::type* x, const typename Op::type* y,
  typename Op::type zero, typename Op::type* to) {
  const typename Op::type begin = x[threadIdx.x], other = y[threadIdx.x];
  typename Op::type value = begin;
  __syncthreads();
  const long long from = clock64();
#pragma unroll 8
  for (int i = 0; i < chain; ++i) {
    Op::run(value, other);
    if constexpr (std::is_floating_point_v<typename Op::type>)
      value = fma(value, zero, begin);
    else
      value = (value & zero) + begin;
  }
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - from);
  to[threadIdx.x] = value;
}

template <class Op>
void one(probe_context& c, uint64_t* cycles) {
  using type = typename Op::type;
  type* x = device_memory<type>(9 * 32);
  type* y = device_memory<type>(9 * 32);
  type* to = device_memory<type>(9 * 32);
  constexpr bool wide = sizeof(type) == 8;
  fill(x, 9 * 32, wide ? 60 : 30);
  fill(y, 9 * 32, wide ? 20 : 10);
  const int sms = c.multiprocessors;
  expand<Op, 1><<<sms, 32>>>(x, y, to);
  expand<Op, 9><<<sms, 32>>>(x, y, to);
  CALIBRATION_CUDA(cudaGetLastError());
  const double alone =
    block_cycles([&] { in_a_chain<Op><<<sms, 32>>>(cycles, x, y, type{0}, to); }, cycles, sms);
  c.row(Op::name, "chained", alone / chain, "cycles");
  for (type* const p : {x, y, to})
    CALIBRATION_CUDA(cudaFree(p));
}

template <class... Ops>
void every(probe_context& c, uint64_t* cycles) {
  (one<Ops>(c, cycles), ...);
}

} // namespace

void probe_expansion(probe_context& c) {
  auto* cycles = device_memory<uint64_t>(1024);
  every<nothing_u32, nothing_f32, nothing_u64, nothing_f64, add_u32, mul_lo_u32, mul_hi_u32, min_u32,
    div_u32, rem_u32, div_s32, rem_s32, add_u64, mul_lo_u64, mul_hi_u64, min_u64, div_u64, rem_u64,
    div_s64, rem_s64, mad_lo_u64, popc_b32, clz_b32, brev_b32, bfe_u32, add_f32, min_f32, div_rn_f32,
    div_full_f32, div_approx_f32, div_approx_ftz_f32, rcp_rn_f32, rcp_approx_f32, rcp_approx_ftz_f32,
    sqrt_rn_f32, sqrt_approx_f32, sqrt_approx_ftz_f32, rsqrt_approx_f32, rsqrt_approx_ftz_f32,
    ex2_approx_f32, ex2_approx_ftz_f32, lg2_approx_f32, lg2_approx_ftz_f32, sin_approx_f32,
    cos_approx_f32, tanh_approx_f32, add_f64, div_rn_f64, rcp_rn_f64, sqrt_rn_f64, cvt_f32_u32,
    cvt_f32_s32, cvt_u32_f32, cvt_s32_f32, cvt_rni_s32_f32, cvt_bf16x2, cvt_f16x2, cvt_f32_f16,
    cvt_f32_bf16, cvt_rni_f32, cvt_f64_f32, exp_call, exp2_call, exp10_call, expm1_call, log_call,
    log2_call, log10_call, log1p_call, sqrt_call, rsqrt_call, cbrt_call, rcbrt_call, sin_call,
    cos_call, tan_call, asin_call, acos_call, atan_call, sinh_call, cosh_call, tanh_call, asinh_call,
    acosh_call, atanh_call, erf_call, erfc_call, tgamma_call, floor_call, ceil_call, trunc_call,
    round_call, rint_call, sinpi_call, cospi_call, normcdf_call, pow_call, atan2_call, fmod_call,
    hypot_call, fdim_call>(c, cycles);
}

} // namespace gristmill::calibration
