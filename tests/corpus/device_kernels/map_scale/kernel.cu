#include <cstdint>

// y = 1.5 x + 0.25. VEC floats an access, UNROLL accesses in flight a thread.
struct alignas(4 * VEC) pack {
  float v[VEC];
};

extern "C" __global__ void __launch_bounds__(256)
  map_scale(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int packs = n / VEC;
  const int first = static_cast<int>(blockIdx.x * (256 * UNROLL) + threadIdx.x);
  pack p[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + u * 256 < packs)
      p[u] = reinterpret_cast<const pack*>(x)[first + u * 256];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + u * 256 < packs) {
#pragma unroll
      for (int i = 0; i < VEC; ++i)
        p[u].v[i] = fmaf(p[u].v[i], 1.5f, 0.25f);
      reinterpret_cast<pack*>(y)[first + u * 256] = p[u];
    }
}
