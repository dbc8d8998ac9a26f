#include <cstdint>
#include <cuda_bf16.h>

// y[r] = dot(a[r], b[r]) of bf16 rows, a warp a row, eight elements a load.
__device__ float pair_dot(uint32_t p, uint32_t q) {
  return __uint_as_float(p << 16) * __uint_as_float(q << 16)
    + __uint_as_float(p & 0xffff0000u) * __uint_as_float(q & 0xffff0000u);
}

extern "C" __global__ void __launch_bounds__(256) dot_shuffle(const __nv_bfloat16* __restrict__ a,
  const __nv_bfloat16* __restrict__ b, float* __restrict__ y, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows)
    return;
  const uint4* p = reinterpret_cast<const uint4*>(a + static_cast<size_t>(row) * columns);
  const uint4* q = reinterpret_cast<const uint4*>(b + static_cast<size_t>(row) * columns);
  float sum = 0;
  for (int i = lane; i < columns / 8; i += 32) {
    const uint4 u = p[i], v = q[i];
    sum += pair_dot(u.x, v.x) + pair_dot(u.y, v.y) + pair_dot(u.z, v.z) + pair_dot(u.w, v.w);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (lane == 0)
    y[row] = sum;
}
