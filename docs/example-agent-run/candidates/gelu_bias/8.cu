#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float gelu(float x) {
  const float u = x * fmaf(0.0356774081f, x * x, 0.7978845608f);
  float th; asm("tanh.approx.f32 %0, %1;" : "=f"(th) : "f"(u));
  const float h = 0.5f * x;
  return fmaf(h, th, h);
}
__device__ __forceinline__ uint32_t two(uint32_t a, uint32_t b) {
  uint32_t x, s, p, u, t, h, r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(0x3f803f80u), "r"(b));
  asm("fma.rn.bf16x2 %0, %1, %1, %2;" : "=r"(s) : "r"(x), "r"(0x80008000u));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(p) : "r"(s), "r"(0x3d123d12u), "r"(0x3f4c3f4cu));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(u) : "r"(x), "r"(p), "r"(0x80008000u));
  asm("tanh.approx.bf16x2 %0, %1;" : "=r"(t) : "r"(u));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(h) : "r"(x), "r"(0x3f003f00u), "r"(0x80008000u));
  asm("fma.rn.bf16x2 %0, %1, %2, %1;" : "=r"(r) : "r"(h), "r"(t));
  return r;
}
__global__ void gelu_vec(const uint4* __restrict__ x, const uint4* __restrict__ bias, uint4* __restrict__ y) {
  const int c = threadIdx.x;
  const long long i = (long long)blockIdx.x * Q + c + blockIdx.y * blockDim.x;
  const uint4 a = x[i], b = bias[c + blockIdx.y * blockDim.x];
  uint4 r;
  r.x = two(a.x, b.x); r.y = two(a.y, b.y); r.z = two(a.z, b.z); r.w = two(a.w, b.w);
  y[i] = r;
}

__global__ void __launch_bounds__(256) gelu_rows(const uint4* __restrict__ x, const uint4* __restrict__ bias, uint4* __restrict__ y) {
  const int c = threadIdx.x + blockIdx.y * 256;
  const uint4 b = bias[c];
  x += (long long)blockIdx.x * (R * 512) + c;
  y += (long long)blockIdx.x * (R * 512) + c;
  uint4 a[R];
#pragma unroll
  for (int k = 0; k < R; ++k) a[k] = *(x + k * 512);
#pragma unroll
  for (int k = 0; k < R; ++k) {
    uint4 r;
    r.x = two(a[k].x, b.x); r.y = two(a[k].y, b.y); r.z = two(a[k].z, b.z); r.w = two(a[k].w, b.w);
    y[k * 512] = r;
  }
}
__global__ void gelu_scalar(const unsigned short* __restrict__ x, const unsigned short* __restrict__ bias, unsigned short* __restrict__ y, int width) {
  const int i = blockIdx.x * width + threadIdx.x;
  y[i] = (unsigned short)two(x[i], bias[threadIdx.x]);
}
