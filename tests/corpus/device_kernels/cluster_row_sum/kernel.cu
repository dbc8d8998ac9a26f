#include <cstdint>

// y[r] = sum of row r: SIZE blocks of a cluster take a part of the row each, the first reads the
// others' sums from their shared memory.
extern "C" __global__ void __launch_bounds__(256)
  cluster_row_sum(const float* __restrict__ x, float* __restrict__ y, int columns) {
  __shared__ float part[8];
  __shared__ float own;
  const int row = static_cast<int>(blockIdx.x) / SIZE, rank = static_cast<int>(blockIdx.x) % SIZE;
  const int thread = static_cast<int>(threadIdx.x), share = columns / SIZE;
  const float4* from =
    reinterpret_cast<const float4*>(x + static_cast<size_t>(row) * columns + rank * share);
  float sum = 0;
  for (int i = thread; i < share / 4; i += 256) {
    const float4 v = from[i];
    sum += v.x + v.y + (v.z + v.w);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (thread % 32 == 0)
    part[thread / 32] = sum;
  __syncthreads();
  if (thread == 0) {
    float all = 0;
    for (int w = 0; w < 8; ++w)
      all += part[w];
    own = all;
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 0 && thread == 0) {
    float all = 0;
    for (int r = 0; r < SIZE; ++r) {
      uint32_t there;
      float v;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                   : "=r"(there)
                   : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&own))), "r"(r));
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
      all += v;
    }
    y[row] = all;
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
