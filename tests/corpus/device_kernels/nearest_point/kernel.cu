#include <cstdint>

// For each of n points in the plane the squared distance to the nearest of m others.
extern "C" __global__ void __launch_bounds__(128) nearest_point(const float* __restrict__ points,
  const float* __restrict__ others, float* __restrict__ best, int n, int m) {
  __shared__ float2 tile[128];
  const int i = static_cast<int>(blockIdx.x * 128 + threadIdx.x);
  const float2 own = reinterpret_cast<const float2*>(points)[i < n ? i : n - 1];
  float least = 3.4e38f;
  for (int first = 0; first < m; first += 128) {
    tile[threadIdx.x] =
      reinterpret_cast<const float2*>(others)[first + static_cast<int>(threadIdx.x)];
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < 128; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y;
      least = fminf(least, fmaf(dx, dx, dy * dy));
    }
    __syncthreads();
  }
  if (i < n)
    best[i] = least;
}
