#include <cstdint>

// Running sums of each row of 1024 integers, a block of 1024 threads a row.
extern "C" __global__ void __launch_bounds__(1024)
  scan_block(const int* __restrict__ x, int* __restrict__ y) {
  __shared__ int sums[32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const size_t place = static_cast<size_t>(blockIdx.x) * 1024 + threadIdx.x;
  int v = x[place];
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d)
      v += other;
  }
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = sums[lane];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, s, d);
      if (lane >= d)
        s += other;
    }
    sums[lane] = s;
  }
  __syncthreads();
  y[place] = v + (warp > 0 ? sums[warp - 1] : 0);
}
