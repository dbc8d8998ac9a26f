#include <cstdint>

// The place of the first largest number of each row, a block a row.
extern "C" __global__ void __launch_bounds__(256)
  row_argmax(const float* __restrict__ x, int* __restrict__ place, int columns) {
  __shared__ float best_of[8];
  __shared__ int place_of[8];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float best = -3.4e38f;
  int at = 0x7fffffff;
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += 256)
    if (row[i] > best) {
      best = row[i];
      at = i;
    }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, best, d);
    const int there = __shfl_xor_sync(0xffffffffu, at, d);
    if (other > best || (other == best && there < at)) {
      best = other;
      at = there;
    }
  }
  if (threadIdx.x % 32 == 0) {
    best_of[threadIdx.x / 32] = best;
    place_of[threadIdx.x / 32] = at;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w)
      if (best_of[w] > best || (best_of[w] == best && place_of[w] < at)) {
        best = best_of[w];
        at = place_of[w];
      }
    place[blockIdx.x] = at;
  }
}
