#include <cuda_bf16.h>
#include <cstdint>
__device__ __forceinline__ float gelu(float x) {
  const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
  const float e = __expf(-2.0f * u);           // 0.5*(1+tanh u) = 1/(1+exp(-2u))
  return x / (1.0f + e);
}
__device__ __forceinline__ uint32_t two(uint32_t a, uint32_t b) {
  const float lo = __uint_as_float(a << 16) + __uint_as_float(b << 16);
  const float hi = __uint_as_float(a & 0xffff0000u) + __uint_as_float(b & 0xffff0000u);
  const __nv_bfloat162 r = __floats2bfloat162_rn(gelu(lo), gelu(hi));
  return *reinterpret_cast<const uint32_t*>(&r);
}
__global__ void gelu_vec(const uint4* __restrict__ x, const uint4* __restrict__ bias, uint4* __restrict__ y) {
  const int c = threadIdx.x;
  const long long i = (long long)blockIdx.x * Q + c + blockIdx.y * blockDim.x;
  const uint4 a = x[i], b = bias[c + blockIdx.y * blockDim.x];
  uint4 r;
  r.x = two(a.x, b.x); r.y = two(a.y, b.y); r.z = two(a.z, b.z); r.w = two(a.w, b.w);
  y[i] = r;
}
__global__ void gelu_scalar(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ bias, __nv_bfloat16* __restrict__ y, int width) {
  const int c = threadIdx.x;
  const int i = blockIdx.x * width + c;
  if (c < width)
    y[i] = __float2bfloat16_rn(gelu(__bfloat162float(x[i]) + __bfloat162float(bias[c])));
}
