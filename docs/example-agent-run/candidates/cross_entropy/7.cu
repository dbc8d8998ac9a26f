#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float lo(uint32_t a) { return __uint_as_float(a << 16); }
__device__ __forceinline__ float hi(uint32_t a) { return __uint_as_float(a & 0xffff0000u); }
__device__ __forceinline__ float ex2(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
#define L2E 1.4426950408889634f
__device__ __forceinline__ float warp_max(float m) {
  const int i = __float_as_int(m);
  const int k = i ^ ((i >> 31) & 0x7fffffff);
  const int r = __reduce_max_sync(~0u, k);
  return __int_as_float(r ^ ((r >> 31) & 0x7fffffff));
}
__device__ __forceinline__ float warp_sum(float s) {
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  return s;
}
__device__ __forceinline__ int wrap(long long l, int voc) {
  int r = (int)(l % voc);
  return r < 0 ? r + voc : r;
}
__shared__ float picked;
__device__ __forceinline__ void finish(float m, float s, const __nv_bfloat16* row, const long long* label, float* loss, int voc) {
  __shared__ float pm[T / 32], ps[T / 32];
  const int t = threadIdx.x;
  float chosen = 0.f;
  if (row != nullptr && t == 0) chosen = __bfloat162float(row[wrap(*label, voc)]);
  if ((t & 31) == 0) { pm[t >> 5] = m; ps[t >> 5] = s; }
  __syncthreads();
  if (t == 0) {
    float M = pm[0];
#pragma unroll
    for (int i = 1; i < T / 32; ++i) M = fmaxf(M, pm[i]);
    float S = 0.f;
#pragma unroll
    for (int i = 0; i < T / 32; ++i) S += ps[i] * __expf(pm[i] - M);
    *loss = M + __logf(S) - (row != nullptr ? chosen : picked);
  }
}
__global__ void __launch_bounds__(T) ce_vec(const __nv_bfloat16* __restrict__ x, const long long* __restrict__ labels, float* __restrict__ loss) {
  constexpr int NV = VOC / 8;
  const int t = threadIdx.x;
  const __nv_bfloat16* row = x + (long long)blockIdx.x * VOC;
  const uint4* r4 = reinterpret_cast<const uint4*>(row);
  const int lab = wrap(labels[blockIdx.x], VOC);
  uint4 a[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int j = t + i * T;
    if ((i + 1) * T <= NV) a[i] = r4[j];
    else {
      a[i] = r4[min(j, NV - 1)];
      if (j >= NV) a[i] = make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i)
    if ((lab >> 3) == t + i * T) {
      const uint32_t w01 = (lab & 2) ? a[i].y : a[i].x, w23 = (lab & 2) ? a[i].w : a[i].z;
      const uint32_t w = (lab & 4) ? w23 : w01;
      picked = (lab & 1) ? hi(w) : lo(w);
    }
  float p[V];
#pragma unroll
  for (int i = 0; i < V; ++i)
    p[i] = fmaxf(fmaxf(fmaxf(lo(a[i].x), hi(a[i].x)), fmaxf(lo(a[i].y), hi(a[i].y))), fmaxf(fmaxf(lo(a[i].z), hi(a[i].z)), fmaxf(lo(a[i].w), hi(a[i].w))));
  float m = p[0];
#pragma unroll
  for (int i = 1; i < V; ++i) m = fmaxf(m, p[i]);
  m = warp_max(m);
  const float k = m == -INFINITY ? 0.f : -m * L2E;
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < V; ++i)
    s += ((ex2(fmaf(lo(a[i].x), L2E, k)) + ex2(fmaf(hi(a[i].x), L2E, k))) + (ex2(fmaf(lo(a[i].y), L2E, k)) + ex2(fmaf(hi(a[i].y), L2E, k)))) +
         ((ex2(fmaf(lo(a[i].z), L2E, k)) + ex2(fmaf(hi(a[i].z), L2E, k))) + (ex2(fmaf(lo(a[i].w), L2E, k)) + ex2(fmaf(hi(a[i].w), L2E, k))));
  finish(m, warp_sum(s), nullptr, labels + blockIdx.x, loss + blockIdx.x, VOC);
}
__global__ void __launch_bounds__(T) ce_large(const __nv_bfloat16* __restrict__ x, const long long* __restrict__ labels, float* __restrict__ loss, int voc) {
  const int NV = voc >> 3;
  const int t = threadIdx.x;
  const __nv_bfloat16* row = x + (long long)blockIdx.x * voc;
  const uint4* r4 = reinterpret_cast<const uint4*>(row);
  if (t == 0) picked = __bfloat162float(row[wrap(labels[blockIdx.x], voc)]);
  uint4 a[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int j = t + i * T;
    if (i < V - 1) a[i] = r4[j];
    else {
      a[i] = r4[min(j, NV - 1)];
      if (j >= NV) a[i] = make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);
    }
  }
  float p[V];
#pragma unroll
  for (int i = 0; i < V; ++i)
    p[i] = fmaxf(fmaxf(fmaxf(lo(a[i].x), hi(a[i].x)), fmaxf(lo(a[i].y), hi(a[i].y))), fmaxf(fmaxf(lo(a[i].z), hi(a[i].z)), fmaxf(lo(a[i].w), hi(a[i].w))));
  float m = p[0];
#pragma unroll
  for (int i = 1; i < V; ++i) m = fmaxf(m, p[i]);
  m = warp_max(m);
  const float k = m == -INFINITY ? 0.f : -m * L2E;
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < V; ++i)
    s += ((ex2(fmaf(lo(a[i].x), L2E, k)) + ex2(fmaf(hi(a[i].x), L2E, k))) + (ex2(fmaf(lo(a[i].y), L2E, k)) + ex2(fmaf(hi(a[i].y), L2E, k)))) +
         ((ex2(fmaf(lo(a[i].z), L2E, k)) + ex2(fmaf(hi(a[i].z), L2E, k))) + (ex2(fmaf(lo(a[i].w), L2E, k)) + ex2(fmaf(hi(a[i].w), L2E, k))));
  finish(m, warp_sum(s), nullptr, labels + blockIdx.x, loss + blockIdx.x, voc);
}
__global__ void __launch_bounds__(T) ce_scalar(const __nv_bfloat16* __restrict__ x, const long long* __restrict__ labels, float* __restrict__ loss) {
  const int t = threadIdx.x;
  const __nv_bfloat16* row = x + (long long)blockIdx.x * VOC;
  const int lab = wrap(labels[blockIdx.x], VOC);
  float a[V];
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const int j = t + i * T;
    a[i] = __bfloat162float(row[min(j, VOC - 1)]);
    if (j >= VOC) a[i] = -INFINITY;
  }
#pragma unroll
  for (int i = 0; i < V; ++i) if (lab == t + i * T) picked = a[i];
  float m = a[0];
#pragma unroll
  for (int i = 1; i < V; ++i) m = fmaxf(m, a[i]);
  m = warp_max(m);
  const float k = m == -INFINITY ? 0.f : -m * L2E;
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < V; ++i) s += ex2(fmaf(a[i], L2E, k));
  finish(m, warp_sum(s), nullptr, labels + blockIdx.x, loss + blockIdx.x, VOC);
}
