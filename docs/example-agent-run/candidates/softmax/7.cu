
__device__ __forceinline__ float warp_max(float m) {
  const int i = __float_as_int(m);
  const int k = i ^ ((i >> 31) & 0x7fffffff);
  const int r = __reduce_max_sync(~0u, k);
  return __int_as_float(r ^ ((r >> 31) & 0x7fffffff));
}

// sum over a warp by two tf32 products with ones; each value goes in as a high and a low part, so that about 21 bits stay
__device__ __forceinline__ void mma_ones(float v, float& c0, float& c1) {
  unsigned h, l; float c2, c3;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(h) : "f"(v));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(l) : "f"(v - __uint_as_float(h)));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%6}, {%7,%7,%7,%7};"
      : "=f"(c0), "=f"(c1), "=f"(c2), "=f"(c3) : "r"(0x3f800000u), "r"(h), "r"(l), "f"(0.f));
}
__device__ __forceinline__ float warp_sum_mma(float v) {
  float a, b;
  mma_ones(v, a, b);
  mma_ones(a + b, a, b);
  return a;
}


__global__ void __launch_bounds__(32) softmax_warp4(const float* __restrict__ x, float* __restrict__ y) {
  const int t = threadIdx.x;
  const float4* xr = reinterpret_cast<const float4*>(x + blockIdx.x * (long long)COLS);
  float4* yr = reinterpret_cast<float4*>(y + blockIdx.x * (long long)COLS);
  constexpr int Q = COLS / 4;
  float4 v[8];
  float p[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (t + 32 * i < Q) v[i] = xr[t + 32 * i];
    else v[i] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) p[i] = fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w));
  float m = fmaxf(fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3])), fmaxf(fmaxf(p[4], p[5]), fmaxf(p[6], p[7])));
  m = warp_max(m);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i].x = __expf(v[i].x - m); v[i].y = __expf(v[i].y - m);
    v[i].z = __expf(v[i].z - m); v[i].w = __expf(v[i].w - m);
    p[i] = (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
  float s = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
  s = warp_sum_mma(s);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i].x *= r; v[i].y *= r; v[i].z *= r; v[i].w *= r;
    if (t + 32 * i < Q) yr[t + 32 * i] = v[i];
  }
}

__global__ void __launch_bounds__(128) softmax_row16(const float* __restrict__ x, float* __restrict__ y) {
  const int t = threadIdx.x & 31;
  const long long row = blockIdx.x * 4ll + (threadIdx.x >> 5);
  const float4* xr = reinterpret_cast<const float4*>(x + row * 2048);
  float4* yr = reinterpret_cast<float4*>(y + row * 2048);
  float4 v[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = xr[t + 32 * i];
  float m = v[0].x;
#pragma unroll
  for (int i = 0; i < 16; ++i) m = fmaxf(m, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
  m = warp_max(m);
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    v[i].x = __expf((v[i].x - m)); v[i].y = __expf((v[i].y - m));
    v[i].z = __expf((v[i].z - m)); v[i].w = __expf((v[i].w - m));
    s += (v[i].x + v[i].y) + (v[i].z + v[i].w);
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    v[i].x *= r; v[i].y *= r; v[i].z *= r; v[i].w *= r;
    yr[t + 32 * i] = v[i];
  }
}
// one warp a row, row in registers
__global__ void __launch_bounds__(32) softmax_warp(const float* __restrict__ x, float* __restrict__ y) {
  const int t = threadIdx.x;
  const float* xr = x + blockIdx.x * (long long)COLS;
  float* yr = y + blockIdx.x * (long long)COLS;
  constexpr int N = (COLS + 31) / 32;
  float v[N];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = (t + 32 * i < COLS) ? xr[t + 32 * i] : -INFINITY;
  float m = v[0];
#pragma unroll
  for (int i = 1; i < N; ++i) m = fmaxf(m, v[i]);
  m = warp_max(m);
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < N; ++i) { v[i] = __expf(v[i] - m); s += v[i]; }
  s = warp_sum_mma(s);
  const float r = 1.0f / s;
#pragma unroll
  for (int i = 0; i < N; ++i) if (t + 32 * i < COLS) yr[t + 32 * i] = v[i] * r;
}
