#include <cstdint>

// The eight largest numbers of each row, largest first: a block keeps the row in shared memory and
// takes the largest out eight times.
extern "C" __global__ void __launch_bounds__(256)
  top_k(const float* __restrict__ x, float* __restrict__ y, int columns) {
  extern __shared__ float row[];
  __shared__ float best_of[8];
  __shared__ int place_of[8];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < columns; i += 256)
    row[i] = x[static_cast<size_t>(blockIdx.x) * columns + i];
  __syncthreads();
  for (int found = 0; found < 8; ++found) {
    float best = -3.4e38f;
    int at = thread;
    for (int i = thread; i < columns; i += 256)
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
    if (thread % 32 == 0) {
      best_of[thread / 32] = best;
      place_of[thread / 32] = at;
    }
    __syncthreads();
    if (thread == 0) {
      for (int w = 1; w < 8; ++w)
        if (best_of[w] > best) {
          best = best_of[w];
          at = place_of[w];
        }
      y[static_cast<size_t>(blockIdx.x) * 8 + found] = best;
      row[at] = -3.4e38f;
    }
    __syncthreads();
  }
}
