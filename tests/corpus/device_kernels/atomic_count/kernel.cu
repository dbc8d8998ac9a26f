#include <cstdint>

// Adds numbers into SLOTS counters by global atomics: one counter is contention, many are not.
extern "C" __global__ void __launch_bounds__(256)
  atomic_count(const int* __restrict__ x, int* __restrict__ sums, int n) {
  for (int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x) * 256)
    atomicAdd(&sums[static_cast<unsigned>(i) * 2654435761u % SLOTS], x[i] & 15);
}
