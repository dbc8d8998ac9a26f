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
__global__ void __launch_bounds__(LANES * RG) col_stage1(const uint4* __restrict__ x, float* __restrict__ out, int width, int rows, int per) {
  const int r0 = blockIdx.y * per;
  strip(x + blockIdx.x * LANES, width >> 3, r0, min(rows, r0 + per), out + (long long)blockIdx.y * width + blockIdx.x * (LANES * 8));
}
// one launch: the block of a strip that arrives last adds the partial rows
__global__ void __launch_bounds__(LANES * RG) col_last(const uint4* __restrict__ x, float* part, unsigned* count, float* __restrict__ out, int width, int rows, int per) {
  __shared__ bool last;
  const int r0 = blockIdx.y * per, c = blockIdx.x * (LANES * 8);
  strip(x + blockIdx.x * LANES, width >> 3, r0, min(rows, r0 + per), part + (long long)blockIdx.y * width + c);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count + blockIdx.x, 1u) == gridDim.y - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  float v[32], t = 0.f;
#pragma unroll
  for (int k = 0; k < 32; ++k) v[k] = __ldcg(part + (long long)k * width + c + threadIdx.x);
#pragma unroll
  for (int k = 0; k < 32; ++k) t += v[k];
  out[c + threadIdx.x] = t;
  if (threadIdx.x == 0) count[blockIdx.x] = 0u;
}
__global__ void __launch_bounds__(1024) col_scalar(const __nv_bfloat16* __restrict__ x, float* __restrict__ out, int width, int rows) {
  __shared__ float part[32][33];
  const int l = threadIdx.x & 31, g = threadIdx.x >> 5, c = min(blockIdx.x * 32 + l, width - 1);
  float s = 0.f;
  for (int r = g; r < rows; r += 32) s += __bfloat162float(x[r * width + c]);
  part[g][l] = s;
  __syncthreads();
  s = part[l][g];
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (l == 0 && blockIdx.x * 32 + g < width) out[blockIdx.x * 32 + g] = s;
}
