#include <cstdint>

// C = A B in float, stream-K: the steps along K of all tiles of 64 x 64 are dealt out evenly to the
// blocks. A tile's last part waits for the earlier parts, which lower blocks leave in memory.
constexpr int depth = 16;

extern "C" __global__ void __launch_bounds__(256)
  gemm_stream_k(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ parts,
    int* __restrict__ ready, float* __restrict__ c, int tiles_n, int tiles, int n, int k) {
  __shared__ float left[depth][68], right[depth][64];
  const int thread = static_cast<int>(threadIdx.x), tx = thread % 16, ty = thread / 16;
  const int block = static_cast<int>(blockIdx.x), steps = k / depth;
  const int total = tiles * steps, blocks = static_cast<int>(gridDim.x);
  const int share = (total + blocks - 1) / blocks;
  int now = block * share;
  const int end = min(total, now + share);
  while (now < end) {
    const int tile = now / steps, first = now % steps, last = min(steps, first + end - now);
    const int m0 = tile / tiles_n * 64, n0 = tile % tiles_n * 64;
    float sum[4][4] = {};
    for (int s = first; s < last; ++s) {
      for (int i = thread; i < 64 * depth; i += 256) {
        left[i % depth][i / depth] =
          a[static_cast<size_t>(m0 + i / depth) * k + s * depth + i % depth];
        right[i / 64][i % 64] = b[static_cast<size_t>(s * depth + i / 64) * n + n0 + i % 64];
      }
      __syncthreads();
#pragma unroll
      for (int kk = 0; kk < depth; ++kk)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            sum[i][j] = fmaf(left[kk][ty * 4 + i], right[kk][tx + j * 16], sum[i][j]);
      __syncthreads();
    }
    if (last < steps) {
      float* to = parts + static_cast<size_t>(block) * 4096;
#pragma unroll
      for (int i = 0; i < 16; ++i)
        to[i * 256 + thread] = sum[i / 4][i % 4];
      __threadfence();
      __syncthreads();
      if (thread == 0)
        atomicExch(&ready[block], 1);
    } else {
      for (int before = block - 1, missing = first; missing > 0; --before) {
        if (thread == 0)
          while (*reinterpret_cast<volatile int*>(&ready[before]) == 0) {
          }
        __syncthreads();
        __threadfence();
        const float* from = parts + static_cast<size_t>(before) * 4096;
#pragma unroll
        for (int i = 0; i < 16; ++i)
          sum[i / 4][i % 4] += __ldcg(&from[i * 256 + thread]);
        missing -= share;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          c[static_cast<size_t>(m0 + ty * 4 + i) * n + n0 + tx + j * 16] = sum[i][j];
    }
    now += last - first;
  }
}
