#include <cstdint>

// y[c] = sum of column c. TILED: 32 x 8 threads share 32 columns; otherwise a thread owns a column.
#if TILED
extern "C" __global__ void __launch_bounds__(256)
  column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float part[8][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, strip = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  for (int r = strip; r < rows; r += 8)
    sum += x[static_cast<size_t>(r) * columns + column];
  part[strip][lane] = sum;
  __syncthreads();
  if (strip == 0) {
    for (int s = 1; s < 8; ++s)
      sum += part[s][lane];
    y[column] = sum;
  }
}
#else
extern "C" __global__ void __launch_bounds__(128)
  column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  const int column = static_cast<int>(blockIdx.x * 128 + threadIdx.x);
  if (column >= columns)
    return;
  float sum = 0;
  for (int r = 0; r < rows; ++r)
    sum += x[static_cast<size_t>(r) * columns + column];
  y[column] = sum;
}
#endif
