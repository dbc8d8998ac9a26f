#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float lo(uint32_t a) { return __uint_as_float(a << 16); }
__device__ __forceinline__ float hi(uint32_t a) { return __uint_as_float(a & 0xffff0000u); }
__device__ __forceinline__ uint32_t pk(float a, float b) {
  const __nv_bfloat162 r = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&r);
}
// sum over a warp by two tf32 products with a matrix of ones
__device__ __forceinline__ float mma_ones(float v) {
  uint32_t b; float c0, c1, c2, c3;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b) : "f"(v));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%6}, {%7,%7,%7,%7};"
      : "=f"(c0), "=f"(c1), "=f"(c2), "=f"(c3) : "r"(0x3f800000u), "r"(b), "r"(0u), "f"(0.f));
  return c0 + c1;
}
__device__ __forceinline__ float warp_sum_mma(float q) {
  q = mma_ones(q);                       // sum over n pairs: lane holds the sum of columns 2*(lane%4), +1
  uint32_t b; float c0, c1, c2, c3;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b) : "f"(q));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%6}, {%7,%7,%7,%7};"
      : "=f"(c0), "=f"(c1), "=f"(c2), "=f"(c3) : "r"(0x3f800000u), "r"(b), "r"(0u), "f"(0.f));
  return c0;
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
  q = warp_sum_mma(q);
  if ((t & 31) == 0) part[t >> 5] = q;
  __syncthreads();
  float z[T / 32];
#pragma unroll
  for (int i = 0; i < T / 32; ++i) z[i] = part[i];
#pragma unroll
  for (int d = 1; d < T / 32; d *= 2)
#pragma unroll
    for (int i = 0; i + d < T / 32; i += 2 * d) z[i] += z[i + d];
  q = z[0];
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
// one element a thread
__global__ void __launch_bounds__(352) rms_scalar(const __nv_bfloat16* __restrict__ h, const __nv_bfloat16* __restrict__ res, const __nv_bfloat16* __restrict__ scale,
                           __nv_bfloat16* __restrict__ out, __nv_bfloat16* __restrict__ nres) {
  __shared__ float part[11];
  const int t = threadIdx.x, c = min(t, 332), i = blockIdx.x * 333 + c;
  const float w = __bfloat162float(scale[c]);
  const float s = __bfloat162float(h[i]) + __bfloat162float(res[i]);
  float q = t < 333 ? s * s : 0.f;
  if (t < 333) nres[i] = __float2bfloat16_rn(s);
  q = warp_sum_mma(q);
  if ((t & 31) == 0) part[t >> 5] = q;
  __syncthreads();
  q = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])) + ((part[8] + part[9]) + part[10]);
  if (t < 333) out[i] = __float2bfloat16_rn(s * rsqrtf(q * (1.0f / 333) + 1e-6f) * w);
}
