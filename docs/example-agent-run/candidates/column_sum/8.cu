#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float lo(uint32_t a) { return __uint_as_float(a << 16); }
__device__ __forceinline__ float hi(uint32_t a) { return __uint_as_float(a & 0xffff0000u); }
__device__ __forceinline__ void add(float (&s)[8], uint4 a) {
  s[0] += lo(a.x); s[1] += hi(a.x); s[2] += lo(a.y); s[3] += hi(a.y);
  s[4] += lo(a.z); s[5] += hi(a.z); s[6] += lo(a.w); s[7] += hi(a.w);
}
// strip of LANES*8 columns, rows [r0, r1): block of LANES x RG threads; result of the strip in out[LANES*8]
__device__ __forceinline__ void strip(const uint4* __restrict__ x, int q, int r0, int r1, float* __restrict__ out) {
  __shared__ float4 part[RG][LANES * 2];
  const int l = threadIdx.x % LANES, g = threadIdx.x / LANES;
  float s[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  int r = r0 + g;
  const uint4* p = x + (long long)r * q + l;
  for (; r + (U - 1) * RG < r1; r += U * RG, p += (long long)U * RG * q) {
    uint4 a[U];
#pragma unroll
    for (int k = 0; k < U; ++k) a[k] = p[(long long)k * RG * q];
#pragma unroll
    for (int k = 0; k < U; ++k) add(s, a[k]);
  }
  for (; r < r1; r += RG, p += (long long)RG * q) add(s, *p);
  part[g][l] = make_float4(s[0], s[1], s[2], s[3]);
  part[g][l + LANES] = make_float4(s[4], s[5], s[6], s[7]);
  __syncthreads();
  const float* f = &part[0][0].x;
  for (int c = threadIdx.x; c < LANES * 8; c += LANES * RG) {
    const int a = c >> 3, b = c & 7;
    const int o = (a + (b >> 2) * LANES) * 4 + (b & 3);
    float t = 0.f;
#pragma unroll
    for (int k = 0; k < RG; ++k) t += f[k * LANES * 8 + o];
    out[c] = t;
  }
}
// one launch: the blocks of a strip form a cluster and add their sums over distributed shared memory
__global__ void __launch_bounds__(LANES * RG) col_cluster(const uint4* __restrict__ x, float* __restrict__ out, int width, int rows, int per) {
  namespace cg = cooperative_groups;
  cg::cluster_group cl = cg::this_cluster();
  __shared__ float mine[LANES * 8];
  const int r0 = blockIdx.y * per;
  strip(x + blockIdx.x * LANES, width >> 3, r0, min(rows, r0 + per), mine);
  cl.sync();
  constexpr int S = 8, C = LANES * 8 / S;
  if (threadIdx.x < C) {
    const int c = blockIdx.y * C + threadIdx.x;
    float v[S];
#pragma unroll
    for (int k = 0; k < S; ++k) v[k] = *cl.map_shared_rank(mine + c, k);
    out[blockIdx.x * (LANES * 8) + c] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  }
  cl.sync();
}
// eight columns a block, one 16-byte vector of a row a thread
__global__ void __launch_bounds__(128) col_narrow(const uint4* __restrict__ x, float* __restrict__ out, int q, int rows) {
  __shared__ float part[8][132];
  const int t = threadIdx.x;
  float s[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  for (int r = t; r < rows; r += 512) {
    uint4 a[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      a[k] = x[(long long)min(r + 128 * k, rows - 1) * q + blockIdx.x];
      if (r + 128 * k >= rows) a[k] = make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) add(s, a[k]);
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) part[k][t] = s[k];
  __syncthreads();
  const int c = t >> 4, g = t & 15;
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = part[c][g + 16 * k];
  float u = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
#pragma unroll
  for (int o = 8; o; o >>= 1) u += __shfl_xor_sync(~0u, u, o);
  if (g == 0) out[blockIdx.x * 8 + c] = u;
}
// sum over a warp by two tf32 products with ones; each value goes in as a high and a low part
__device__ __forceinline__ void mma_ones(float v, float& c0, float& c1) {
  uint32_t h, l; float c2, c3;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(h) : "f"(v));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(l) : "f"(v - __uint_as_float(h)));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%6}, {%7,%7,%7,%7};"
      : "=f"(c0), "=f"(c1), "=f"(c2), "=f"(c3) : "r"(0x3f800000u), "r"(h), "r"(l), "f"(0.f));
}
__device__ __forceinline__ float warp_sum(float v) {
  float a, b;
  mma_ones(v, a, b);
  mma_ones(a + b, a, b);
  return a;
}
__global__ void __launch_bounds__(256) col_scalar(const __nv_bfloat16* __restrict__ x, float* __restrict__ out, int width, int rows) {
  __shared__ float part[32][9];
  const int l = threadIdx.x & 7, g = threadIdx.x >> 3, c = min(blockIdx.x * 8 + l, width - 1);
  float s = 0.f;
  for (int r = g; r < rows; r += 128) {
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      v[k] = __bfloat162float(x[min(r + 32 * k, rows - 1) * width + c]);
      v[k] = r + 32 * k < rows ? v[k] : 0.f;
    }
    s += (v[0] + v[1]) + (v[2] + v[3]);
  }
  part[g][l] = s;
  __syncthreads();
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  s = part[lane][w];
  s = warp_sum(s);
  if (lane == 0 && blockIdx.x * 8 + w < width) out[blockIdx.x * 8 + w] = s;
}
