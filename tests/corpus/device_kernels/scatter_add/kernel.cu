#include <cstdint>

// y[ids[i]] += x[i] for rows, by atomics on floats. y starts at zero.
extern "C" __global__ void __launch_bounds__(256) scatter_add(const float* __restrict__ x,
  const int* __restrict__ ids, float* __restrict__ y, int count, int width) {
  const int i = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  if (i >= count)
    return;
  const float* from = x + static_cast<size_t>(i) * width;
  float* to = y + static_cast<size_t>(ids[i]) * width;
  for (int c = static_cast<int>(threadIdx.x) % 32; c < width; c += 32)
    atomicAdd(&to[c], from[c]);
}
