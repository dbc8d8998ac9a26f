#include <cstdint>

// ROUNDS rounds of an integer mixer: multiplications, shifts, exclusive ors.
extern "C" __global__ void __launch_bounds__(256)
  int_hash(const uint32_t* __restrict__ x, uint32_t* __restrict__ y, int n) {
  for (int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x) * 256) {
    uint32_t h = x[i];
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
      h ^= h >> 16;
      h *= 0x7feb352du;
      h ^= h >> 15;
      h *= 0x846ca68bu;
      h += static_cast<uint32_t>(r);
    }
    y[i] = h ^ h >> 16;
  }
}
