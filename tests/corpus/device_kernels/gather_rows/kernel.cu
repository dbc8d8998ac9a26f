#include <cstdint>

// y[i] = table[ids[i]]: rows of an embedding, a warp a row, 16 bytes a lane.
extern "C" __global__ void __launch_bounds__(256) gather_rows(const float* __restrict__ table,
  const int* __restrict__ ids, float* __restrict__ y, int count, int width) {
  const int i = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  if (i >= count)
    return;
  const float4* from = reinterpret_cast<const float4*>(table + static_cast<size_t>(ids[i]) * width);
  float4* to = reinterpret_cast<float4*>(y + static_cast<size_t>(i) * width);
  for (int c = static_cast<int>(threadIdx.x) % 32; c < width / 4; c += 32)
    to[c] = from[c];
}
