#include <cstdint>
#include <cuda_bf16.h>

// y = A x for a bf16 matrix. SPLIT 1: a warp a row; more: SPLIT blocks share the columns of eight
// rows and add up by atomics into y, which starts at zero.
extern "C" __global__ void __launch_bounds__(256) gemv(const __nv_bfloat16* __restrict__ a,
  const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows)
    return;
  const int share = columns / SPLIT, first = static_cast<int>(blockIdx.y) * share;
  const uint4* from =
    reinterpret_cast<const uint4*>(a + static_cast<size_t>(row) * columns + first);
  const float4* with = reinterpret_cast<const float4*>(x + first);
  float sum = 0;
  for (int i = lane; i < share / 8; i += 32) {
    const uint4 v = from[i];
    const float4 low = with[i * 2], high = with[i * 2 + 1];
    sum += __uint_as_float(v.x << 16) * low.x + __uint_as_float(v.x & 0xffff0000u) * low.y
      + __uint_as_float(v.y << 16) * low.z + __uint_as_float(v.y & 0xffff0000u) * low.w
      + __uint_as_float(v.z << 16) * high.x + __uint_as_float(v.z & 0xffff0000u) * high.y
      + __uint_as_float(v.w << 16) * high.z + __uint_as_float(v.w & 0xffff0000u) * high.w;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) {
#if SPLIT == 1
    y[row] = sum;
#else
    atomicAdd(&y[row], sum);
#endif
  }
}
