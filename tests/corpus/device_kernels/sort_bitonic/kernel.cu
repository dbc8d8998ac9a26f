#include <cstdint>

// Sorts each row of 2048 integers in shared memory by a bitonic network, a block of 1024 a row.
extern "C" __global__ void __launch_bounds__(1024)
  sort_bitonic(const int* __restrict__ x, int* __restrict__ y) {
  __shared__ int row[2048];
  const int thread = static_cast<int>(threadIdx.x);
  const size_t first = static_cast<size_t>(blockIdx.x) * 2048;
  row[thread] = x[first + thread];
  row[thread + 1024] = x[first + thread + 1024];
  for (int size = 2; size <= 2048; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int low = thread / stride * stride * 2 + thread % stride;
      const int a = row[low], b = row[low + stride];
      const bool ascending = (low & size) == 0;
      if ((a > b) == ascending) {
        row[low] = b;
        row[low + stride] = a;
      }
    }
  __syncthreads();
  y[first + thread] = row[thread];
  y[first + thread + 1024] = row[thread + 1024];
}
