#include <cstdint>

// y[r] = sum of row r. WARPS warps a row; 1 packs eight rows into a block.
__device__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void __launch_bounds__(256)
  row_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float part[8];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(blockIdx.x) * (8 / WARPS) + warp / WARPS;
  float sum = 0;
  if (row < rows) {
    const float4* from = reinterpret_cast<const float4*>(x + static_cast<size_t>(row) * columns);
    for (int i = warp % WARPS * 32 + lane; i < columns / 4; i += WARPS * 32) {
      const float4 v = from[i];
      sum += v.x + v.y + (v.z + v.w);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0)
    part[warp] = sum;
  __syncthreads();
  if (warp % WARPS == 0 && lane == 0 && row < rows) {
    float all = 0;
    for (int w = 0; w < WARPS; ++w)
      all += part[warp + w];
    y[row] = all;
  }
}
