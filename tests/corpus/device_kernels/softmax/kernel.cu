#include <cstdint>

// Softmax of rows. KIND 0: a warp a row, three passes; 1: a block a row that keeps it in shared
// memory; 2: a block a row, largest and sum found in one pass ("online").
__device__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
__device__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void __launch_bounds__(256)
  softmax(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
#if KIND == 0
  const int r = static_cast<int>(blockIdx.x) * 8 + warp;
  if (r >= rows)
    return;
  const float* row = x + static_cast<size_t>(r) * columns;
  float* to = y + static_cast<size_t>(r) * columns;
  float top = -3.4e38f, sum = 0;
  for (int i = lane; i < columns; i += 32)
    top = fmaxf(top, row[i]);
  top = warp_max(top);
  for (int i = lane; i < columns; i += 32)
    sum += __expf(row[i] - top);
  sum = warp_sum(sum);
  const float scale = 1.f / sum;
  for (int i = lane; i < columns; i += 32)
    to[i] = __expf(row[i] - top) * scale;
#else
  extern __shared__ float kept[];
  __shared__ float part[8], other[8];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float* to = y + static_cast<size_t>(blockIdx.x) * columns;
  float top = -3.4e38f, sum = 0;
#if KIND == 1
  for (int i = thread; i < columns; i += 256)
    top = fmaxf(top, kept[i] = row[i]);
  top = warp_max(top);
  if (lane == 0)
    part[warp] = top;
  __syncthreads();
  for (int w = 0; w < 8; ++w)
    top = fmaxf(top, part[w]);
  for (int i = thread; i < columns; i += 256)
    sum += kept[i] = __expf(kept[i] - top);
  sum = warp_sum(sum);
  if (lane == 0)
    other[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < 8; ++w)
    sum += other[w];
  const float scale = 1.f / sum;
  for (int i = thread; i < columns; i += 256)
    to[i] = kept[i] * scale;
#else
  for (int i = thread; i < columns; i += 256) {
    const float v = row[i], higher = fmaxf(top, v);
    sum = sum * __expf(top - higher) + __expf(v - higher);
    top = higher;
  }
  const float high = warp_max(top);
  sum = warp_sum(sum * __expf(top - high));
  if (lane == 0) {
    part[warp] = high;
    other[warp] = sum;
  }
  __syncthreads();
  float highest = part[0];
  for (int w = 1; w < 8; ++w)
    highest = fmaxf(highest, part[w]);
  float all = 0;
  for (int w = 0; w < 8; ++w)
    all += other[w] * __expf(part[w] - highest);
  const float scale = 1.f / all;
  for (int i = thread; i < columns; i += 256)
    to[i] = __expf(row[i] - highest) * scale;
#endif
#endif
}
