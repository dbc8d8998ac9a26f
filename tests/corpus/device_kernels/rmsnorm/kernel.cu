#include <cstdint>
#include <cuda_bf16.h>

// x / sqrt(mean(x^2) + 1e-5) * weight of bf16 rows of 4096, sixteen elements a thread.
extern "C" __global__ void __launch_bounds__(256) rmsnorm(const __nv_bfloat16* __restrict__ x,
  const __nv_bfloat16* __restrict__ weight, __nv_bfloat16* __restrict__ y) {
  __shared__ float part[8];
  const uint4* from = reinterpret_cast<const uint4*>(x + static_cast<size_t>(blockIdx.x) * 4096);
  uint4* to = reinterpret_cast<uint4*>(y + static_cast<size_t>(blockIdx.x) * 4096);
  uint4 kept[2];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    kept[i] = from[i * 256 + threadIdx.x];
    const uint32_t words[4] = {kept[i].x, kept[i].y, kept[i].z, kept[i].w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float a = __uint_as_float(words[j] << 16), b = __uint_as_float(words[j] & 0xffff0000u);
      sum += a * a + b * b;
    }
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < 8; ++w)
    sum += part[w];
  const float scale = rsqrtf(sum / 4096.f + 1e-5f);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint4 g = reinterpret_cast<const uint4*>(weight)[i * 256 + threadIdx.x];
    uint32_t words[4] = {kept[i].x, kept[i].y, kept[i].z, kept[i].w};
    const uint32_t gains[4] = {g.x, g.y, g.z, g.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float a = __uint_as_float(words[j] << 16) * scale * __uint_as_float(gains[j] << 16);
      const float b =
        __uint_as_float(words[j] & 0xffff0000u) * scale * __uint_as_float(gains[j] & 0xffff0000u);
      words[j] = static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16(a)))
        | static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16(b))) << 16;
    }
    to[i * 256 + threadIdx.x] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}
