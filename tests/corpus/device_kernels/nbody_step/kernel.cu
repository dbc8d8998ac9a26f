#include <cstdint>

// The pull of all bodies (x, y, z, mass) on each, tiles of 256 through shared memory.
extern "C" __global__ void __launch_bounds__(256)
  nbody_step(const float* __restrict__ bodies, float* __restrict__ pull, int n) {
  __shared__ float4 tile[256];
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  const float4* all = reinterpret_cast<const float4*>(bodies);
  const float4 own = all[i];
  float x = 0, y = 0, z = 0;
  for (int first = 0; first < n; first += 256) {
    tile[threadIdx.x] = all[first + static_cast<int>(threadIdx.x)];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < 256; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      const float near = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float force = tile[j].w * near * near * near;
      x += dx * force;
      y += dy * force;
      z += dz * force;
    }
    __syncthreads();
  }
  pull[i * 3] = x;
  pull[i * 3 + 1] = y;
  pull[i * 3 + 2] = z;
}
