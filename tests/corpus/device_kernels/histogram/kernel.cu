#include <cstdint>

// Counts of 256 byte values. COPIES histograms in shared memory a block; 0 counts in global memory.
extern "C" __global__ void __launch_bounds__(256)
  histogram(const unsigned char* __restrict__ x, unsigned* __restrict__ bins, int n) {
  const int thread = static_cast<int>(threadIdx.x);
#if COPIES > 0
  __shared__ unsigned own[COPIES][256];
  for (int c = 0; c < COPIES; ++c)
    own[c][thread] = 0;
  __syncthreads();
  unsigned* target = own[thread / 32 % COPIES];
#else
  unsigned* target = bins;
#endif
  for (int i = static_cast<int>(blockIdx.x) * 256 + thread; i < n / 4;
       i += static_cast<int>(gridDim.x) * 256) {
    const unsigned four = reinterpret_cast<const unsigned*>(x)[i];
    atomicAdd(&target[four & 255], 1u);
    atomicAdd(&target[four >> 8 & 255], 1u);
    atomicAdd(&target[four >> 16 & 255], 1u);
    atomicAdd(&target[four >> 24], 1u);
  }
#if COPIES > 0
  __syncthreads();
  unsigned sum = 0;
  for (int c = 0; c < COPIES; ++c)
    sum += own[c][thread];
  atomicAdd(&bins[thread], sum);
#endif
}
