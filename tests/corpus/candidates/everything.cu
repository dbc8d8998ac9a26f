// One of everything that an exported plan can hold; see everything.plan.json. It computes nothing.
#include <cuda_bf16.h>
/* A comment with
#include "nothing.h"
in it. */
#ifndef BM
#define BM 16
#endif
#define TILE BM

struct packed {
  int rows;
  long long columns;
  double scale;
};

__device__ int helper(int x) {
  return x + TILE;
}

template <int N, class E>
__global__ void __launch_bounds__(128, 1) gemm(const __grid_constant__ CUtensorMap map, const E* weight,
  float* part, int* lock, packed what, const float* nothing, float scale, double wide, bool flag, __half small) {
  extern __shared__ float room[];
  if (nothing == nullptr && flag)
    room[threadIdx.x] = float(weight[0]) * scale + float(wide) + float(small) + float(what.scale);
  part[threadIdx.x] = room[0] + float(helper(N)) + float(lock[0] * 0);
  asm volatile("prefetch.global.L2 [%0];" ::"l"(&map));
}

extern "C" __global__ void finish(const float* part, float* y, long long count) {
  for (long long i = threadIdx.x; i < count; i += blockDim.x)
    y[i] = part[0];
}

extern "C" __global__ void unused() {}
