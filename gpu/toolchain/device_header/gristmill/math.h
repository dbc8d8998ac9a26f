// Mathematics. What PTX has an instruction for is that instruction, or a few of them; the rest
// stays a call by the name of the C library, which the interpreter serves with the host's
// mathematics.
#pragma once
#include "math_numbers.h"
#include "types.h"

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()
#define HUGE_VALF __builtin_inff()
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f
#define CUDART_LN2_F 0.693147181f
#define CUDART_L2E_F 1.442695041f
#define CUDART_SQRT_2PI_F 2.506628275f

// The label keeps clang from seeing the C library's function, which it would turn into an intrinsic
// that PTX has no instruction for.
#define GM_CALL_1(NAME)                                                                            \
  extern "C" __device__ float gm_call_##NAME##f(float) __asm__(#NAME "f");                         \
  extern "C" __device__ double gm_call_##NAME(double) __asm__(#NAME);                              \
  GM_DEVICE float NAME##f(float x) { return gm_call_##NAME##f(x); }                                \
  GM_DEVICE float NAME(float x) { return gm_call_##NAME##f(x); }                                   \
  GM_DEVICE double NAME(double x) { return gm_call_##NAME(x); }
#define GM_CALL_2(NAME)                                                                            \
  extern "C" __device__ float gm_call_##NAME##f(float, float) __asm__(#NAME "f");                  \
  extern "C" __device__ double gm_call_##NAME(double, double) __asm__(#NAME);                      \
  GM_DEVICE float NAME##f(float x, float y) { return gm_call_##NAME##f(x, y); }                    \
  GM_DEVICE float NAME(float x, float y) { return gm_call_##NAME##f(x, y); }                       \
  GM_DEVICE double NAME(double x, double y) { return gm_call_##NAME(x, y); }
GM_CALL_1(sin)
GM_CALL_1(cos)
GM_CALL_1(tan)
GM_CALL_1(asin)
GM_CALL_1(acos)
GM_CALL_1(atan)
GM_CALL_1(sinh)
GM_CALL_1(cosh)
GM_CALL_1(asinh)
GM_CALL_1(acosh)
GM_CALL_1(atanh)
GM_CALL_1(erf)
GM_CALL_1(erfc)
GM_CALL_1(expm1)
GM_CALL_1(log1p)
GM_CALL_1(cbrt)
GM_CALL_1(tgamma)
GM_CALL_2(pow)
GM_CALL_2(fmod)
GM_CALL_2(atan2)
GM_CALL_2(hypot)
GM_CALL_2(remainder)
#undef GM_CALL_1
#undef GM_CALL_2
#define GM_CALL_DOUBLE(NAME)                                                                       \
  extern "C" __device__ double gm_call_##NAME(double) __asm__(#NAME);                              \
  GM_DEVICE double NAME(double x) { return gm_call_##NAME(x); }
GM_CALL_DOUBLE(exp)
GM_CALL_DOUBLE(exp2)
GM_CALL_DOUBLE(exp10)
GM_CALL_DOUBLE(log)
GM_CALL_DOUBLE(log2)
GM_CALL_DOUBLE(log10)
GM_CALL_DOUBLE(tanh)
#undef GM_CALL_DOUBLE

// The fast forms: one or two instructions.
GM_DEVICE float __exp2f(float x) { return __nvvm_ex2_approx_f(x); }
GM_DEVICE float __expf(float x) { return __nvvm_ex2_approx_f(x * 1.4426950408889634f); }
GM_DEVICE float __exp10f(float x) { return __nvvm_ex2_approx_f(x * 3.3219280948873623f); }
GM_DEVICE float __log2f(float x) { return __nvvm_lg2_approx_f(x); }
GM_DEVICE float __logf(float x) { return __nvvm_lg2_approx_f(x) * 0.69314718055994531f; }
GM_DEVICE float __log10f(float x) { return __nvvm_lg2_approx_f(x) * 0.30102999566398120f; }
GM_DEVICE float __powf(float x, float y) { return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x)); }
GM_DEVICE float __sinf(float x) { return __nvvm_sin_approx_f(x); }
GM_DEVICE float __cosf(float x) { return __nvvm_cos_approx_f(x); }
GM_DEVICE float __tanf(float x) {
  return __nvvm_div_approx_f(__nvvm_sin_approx_f(x), __nvvm_cos_approx_f(x));
}
GM_DEVICE void __sincosf(float x, float* s, float* c) {
  *s = __sinf(x);
  *c = __cosf(x);
}
GM_DEVICE float __fdividef(float x, float y) { return __nvvm_div_approx_f(x, y); }
GM_DEVICE float __tanhf(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
GM_DEVICE float __saturatef(float x) { return __nvvm_saturate_f(x); }

GM_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
GM_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
GM_DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

#ifdef GM_FAST_MATH
GM_DEVICE float expf(float x) { return __expf(x); }
GM_DEVICE float logf(float x) { return __logf(x); }
GM_DEVICE float exp10f(float x) { return __exp10f(x); }
GM_DEVICE float log10f(float x) { return __log10f(x); }
#else
// exp(x) = 2^n * 2^f with n = round(x log2 e) and f log2 e computed without cancellation: ln 2 goes
// off in two parts, the first of which has trailing zeros. n is split so that 2^n cannot overflow
// before the result does.
GM_DEVICE float expf(float x) {
  float n = __builtin_rintf(__nvvm_fmin_f(__nvvm_fmax_f(x, -105.f), 90.f) * 1.4426950408889634f);
  float r = fmaf(n, -0.693359375f, x);
  r = fmaf(n, 2.12194440054690583e-4f, r);
  float half_n = __builtin_floorf(n * 0.5f);
  float y = __nvvm_ex2_approx_f(r * 1.4426950408889634f);
  y = y * __nvvm_ex2_approx_f(half_n) * __nvvm_ex2_approx_f(n - half_n);
  // Beyond the clamp the reduction means nothing; what is left of it is the sign.
  y = x < -105.f ? 0.f : y;
  return x > 90.f ? INFINITY : y;
}
GM_DEVICE float logf(float x) { return __nvvm_lg2_approx_f(x) * 0.69314718055994531f; }
GM_DEVICE float exp10f(float x) { return static_cast<float>(exp10(static_cast<double>(x))); }
GM_DEVICE float log10f(float x) { return __nvvm_lg2_approx_f(x) * 0.30102999566398120f; }
#endif
GM_DEVICE float exp2f(float x) { return __nvvm_ex2_approx_f(x); }
GM_DEVICE float log2f(float x) { return __nvvm_lg2_approx_f(x); }
GM_DEVICE float exp(float x) { return expf(x); }
GM_DEVICE float exp2(float x) { return exp2f(x); }
GM_DEVICE float log(float x) { return logf(x); }
GM_DEVICE float log2(float x) { return log2f(x); }
GM_DEVICE float log10(float x) { return log10f(x); }
extern "C" __device__ float gm_call_tanhf(float) __asm__("tanhf");
GM_DEVICE float tanhf(float x) {
#ifdef GM_FAST_MATH
  return __tanhf(x);
#else
  return gm_call_tanhf(x);
#endif
}
GM_DEVICE float tanh(float x) { return tanhf(x); }
GM_DEVICE void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
GM_DEVICE float normcdff(float x) { return 0.5f * erfcf(x * -0.70710678118654752f); }
GM_DEVICE float powif(float x, int n) { return powf(x, static_cast<float>(n)); }

GM_DEVICE float sqrtf(float x) {
#ifdef GM_FAST_MATH
  return __nvvm_sqrt_approx_f(x);
#else
  return __nvvm_sqrt_rn_f(x);
#endif
}
GM_DEVICE float sqrt(float x) { return sqrtf(x); }
GM_DEVICE double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
GM_DEVICE float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
GM_DEVICE float rsqrt(float x) { return __nvvm_rsqrt_approx_f(x); }
GM_DEVICE double rsqrt(double x) { return 1.0 / __nvvm_sqrt_rn_d(x); }
GM_DEVICE float fdividef(float x, float y) { return x / y; }

#define GM_BOTH_1(NAME)                                                                            \
  GM_DEVICE float NAME##f(float x) { return __builtin_##NAME##f(x); }                              \
  GM_DEVICE float NAME(float x) { return __builtin_##NAME##f(x); }                                 \
  GM_DEVICE double NAME(double x) { return __builtin_##NAME(x); }
#define GM_BOTH_2(NAME)                                                                            \
  GM_DEVICE float NAME##f(float x, float y) { return __builtin_##NAME##f(x, y); }                  \
  GM_DEVICE float NAME(float x, float y) { return __builtin_##NAME##f(x, y); }                     \
  GM_DEVICE double NAME(double x, double y) { return __builtin_##NAME(x, y); }
GM_BOTH_1(fabs)
GM_BOTH_1(floor)
GM_BOTH_1(ceil)
GM_BOTH_1(trunc)
GM_BOTH_1(rint)
GM_BOTH_1(nearbyint)
GM_BOTH_1(round)
GM_BOTH_2(fmax)
GM_BOTH_2(fmin)
GM_BOTH_2(copysign)
#undef GM_BOTH_1
#undef GM_BOTH_2
GM_DEVICE float abs(float x) { return __builtin_fabsf(x); }
GM_DEVICE double abs(double x) { return __builtin_fabs(x); }
GM_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
GM_DEVICE float min(float a, float b) { return __builtin_fminf(a, b); }
GM_DEVICE double max(double a, double b) { return __builtin_fmax(a, b); }
GM_DEVICE double min(double a, double b) { return __builtin_fmin(a, b); }

GM_DEVICE bool isnan(float x) { return x != x; }
GM_DEVICE bool isnan(double x) { return x != x; }
GM_DEVICE bool isinf(float x) { return __builtin_fabsf(x) == __builtin_inff(); }
GM_DEVICE bool isinf(double x) { return __builtin_fabs(x) == __builtin_inf(); }
GM_DEVICE bool isfinite(float x) { return __builtin_fabsf(x) < __builtin_inff(); }
GM_DEVICE bool isfinite(double x) { return __builtin_fabs(x) < __builtin_inf(); }
GM_DEVICE bool signbit(float x) { return __builtin_bit_cast(int, x) < 0; }

// With a rounding mode in the name. Never contracted into an fma, unlike the operators.
#define GM_ROUNDED(MODE, NVVM)                                                                     \
  GM_DEVICE float __fmaf_##MODE(float x, float y, float z) {                                       \
    return __nvvm_fma_##NVVM##_f(x, y, z);                                                         \
  }                                                                                                \
  GM_DEVICE float __fadd_##MODE(float x, float y) { return __nvvm_add_##NVVM##_f(x, y); }          \
  GM_DEVICE float __fsub_##MODE(float x, float y) { return __nvvm_add_##NVVM##_f(x, -y); }         \
  GM_DEVICE float __fmul_##MODE(float x, float y) { return __nvvm_mul_##NVVM##_f(x, y); }          \
  GM_DEVICE float __fdiv_##MODE(float x, float y) { return __nvvm_div_##NVVM##_f(x, y); }          \
  GM_DEVICE float __frcp_##MODE(float x) { return __nvvm_rcp_##NVVM##_f(x); }                      \
  GM_DEVICE float __fsqrt_##MODE(float x) { return __nvvm_sqrt_##NVVM##_f(x); }                    \
  GM_DEVICE double __dadd_##MODE(double x, double y) { return __nvvm_add_##NVVM##_d(x, y); }       \
  GM_DEVICE double __dmul_##MODE(double x, double y) { return __nvvm_mul_##NVVM##_d(x, y); }       \
  GM_DEVICE double __fma_##MODE(double x, double y, double z) {                                    \
    return __nvvm_fma_##NVVM##_d(x, y, z);                                                         \
  }
GM_ROUNDED(rn, rn)
GM_ROUNDED(rz, rz)
GM_ROUNDED(rd, rm)
GM_ROUNDED(ru, rp)
#undef GM_ROUNDED
GM_DEVICE float __frsqrt_rn(float x) { return __nvvm_rsqrt_approx_f(x); }

// assert stops the kernel with a fault that names file and line.
extern "C" __device__ void __assertfail(
  const char* condition, const char* file, unsigned line, const char* function, size_t char_size);
#ifdef NDEBUG
#define assert(condition) static_cast<void>(0)
#else
#define assert(condition)                                                                          \
  ((condition) ? static_cast<void>(0) : __assertfail(#condition, __FILE__, __LINE__, __func__, 1))
#endif
extern "C" __device__ int printf(const char*, ...);
