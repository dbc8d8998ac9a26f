#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float lo(uint32_t a) { return __uint_as_float(a << 16); }
__device__ __forceinline__ float hi(uint32_t a) { return __uint_as_float(a & 0xffff0000u); }
__device__ __forceinline__ uint32_t pk(float a, float b) {
  const __nv_bfloat162 r = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&r);
}
// one block a row, V vectors of eight a thread
__global__ void __launch_bounds__(T) rms_vec(const uint4* __restrict__ h, const uint4* __restrict__ res, const uint4* __restrict__ scale,
                        uint4* __restrict__ out, uint4* __restrict__ nres) {
  __shared__ float part[32];
  const int t = threadIdx.x;
  const long long base = (long long)blockIdx.x * (T * V);
  uint4 a[V], b[V], w[V];
#pragma unroll
  for (int i = 0; i < V; ++i) { a[i] = h[base + t + i * T]; b[i] = res[base + t + i * T]; w[i] = scale[t + i * T]; }
  float s[V][8];
  float q = 0.f;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const uint32_t x[4] = {a[i].x, a[i].y, a[i].z, a[i].w}, y[4] = {b[i].x, b[i].y, b[i].z, b[i].w};
#pragma unroll
    for (int k = 0; k < 4; ++k) { s[i][2 * k] = lo(x[k]) + lo(y[k]); s[i][2 * k + 1] = hi(x[k]) + hi(y[k]); }
    nres[base + t + i * T] = make_uint4(pk(s[i][0], s[i][1]), pk(s[i][2], s[i][3]), pk(s[i][4], s[i][5]), pk(s[i][6], s[i][7]));
    float e[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) e[k] = fmaf(s[i][2 * k], s[i][2 * k], s[i][2 * k + 1] * s[i][2 * k + 1]);
    q += (e[0] + e[1]) + (e[2] + e[3]);
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) q += __shfl_xor_sync(~0u, q, o);
  if ((t & 31) == 0) part[t >> 5] = q;
  __syncthreads();
  float z[T / 32];
#pragma unroll
  for (int i = 0; i < T / 32; ++i) z[i] = part[i];
  q = 0.f;
#pragma unroll
  for (int i = 0; i < T / 32; ++i) q += z[i];
  const float r = rsqrtf(q * (1.0f / (T * V * 8)) + 1e-6f);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const uint32_t x[4] = {w[i].x, w[i].y, w[i].z, w[i].w};
    uint32_t o[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) o[k] = pk(s[i][2 * k] * r * lo(x[k]), s[i][2 * k + 1] * r * hi(x[k]));
    out[base + t + i * T] = make_uint4(o[0], o[1], o[2], o[3]);
  }
}
// one warp a row of 333
__global__ void __launch_bounds__(32) rms_scalar(const __nv_bfloat16* __restrict__ h, const __nv_bfloat16* __restrict__ res, const __nv_bfloat16* __restrict__ scale,
                           __nv_bfloat16* __restrict__ out, __nv_bfloat16* __restrict__ nres) {
  constexpr int N = 11;
  const int t = threadIdx.x, base = blockIdx.x * 333;
  float s[N], w[N], q = 0.f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int c = t + 32 * i;
    s[i] = 0.f; w[i] = 0.f;
    if (c < 333) { s[i] = __bfloat162float(h[base + c]) + __bfloat162float(res[base + c]); w[i] = __bfloat162float(scale[c]); nres[base + c] = __float2bfloat16_rn(s[i]); }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) q = fmaf(s[i], s[i], q);
#pragma unroll
  for (int o = 16; o; o >>= 1) q += __shfl_xor_sync(~0u, q, o);
  const float r = rsqrtf(q * (1.0f / 333) + 1e-6f);
#pragma unroll
  for (int i = 0; i < N; ++i) if (t + 32 * i < 333) out[base + t + 32 * i] = __float2bfloat16_rn(s[i] * r * w[i]);
}
