#include <cuda_bf16.h>

// y = x / sqrt(mean(x^2) + eps) * weight; a block a row, eight elements a load. Columns are a multiple
// of 8.
__device__ float sum_down(float v) {
#pragma unroll
  for (unsigned distance = 16; distance > 0; distance /= 2)
    v += __shfl_down_sync(0xffffffffu, v, distance);
  return v;
}

extern "C" __global__ void __launch_bounds__(256) rmsnorm(const __nv_bfloat16* __restrict__ x,
    const float* __restrict__ weight, __nv_bfloat16* __restrict__ y, int columns, float eps) {
  __shared__ float of_warp[32];
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  const uint4* from = reinterpret_cast<const uint4*>(x + row);
  const float4* scales = reinterpret_cast<const float4*>(weight);
  uint4* to = reinterpret_cast<uint4*>(y + row);
  const int packs = columns / 8;
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);

  float squares = 0.f;
  for (int i = first; i < packs; i += step) {
    const uint4 pack = __ldg(from + i);
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&pack);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 v = __bfloat1622float2(pairs[k]);
      squares += v.x * v.x + v.y * v.y;
    }
  }
  squares = sum_down(squares);
  if (threadIdx.x % 32 == 0)
    of_warp[threadIdx.x / 32] = squares;
  __syncthreads();
  if (threadIdx.x < 32) {
    squares = sum_down(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0.f);
    if (threadIdx.x == 0)
      of_warp[0] = rsqrtf(squares / static_cast<float>(columns) + eps);
  }
  __syncthreads();
  const float scale = of_warp[0];

  for (int i = first; i < packs; i += step) {
    const uint4 pack = __ldg(from + i);
    const float4 low = scales[2 * i], high = scales[2 * i + 1];
    const float weights[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&pack);
    uint4 result;
    __nv_bfloat162* results = reinterpret_cast<__nv_bfloat162*>(&result);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 v = __bfloat1622float2(pairs[k]);
      results[k] = __floats2bfloat162_rn(
        v.x * scale * weights[2 * k], v.y * scale * weights[2 * k + 1]);
    }
    to[i] = result;
  }
}
