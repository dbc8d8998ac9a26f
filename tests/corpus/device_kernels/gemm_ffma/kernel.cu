#include <cstdint>

// C = A B in float on the ordinary units: a block computes BM x BN, a thread TM x TN, BK deep.
constexpr int across = BN / TN, threads = BM / TM * across;

extern "C" __global__ void __launch_bounds__(threads) gemm_ffma(
  const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ float left[BK][BM + 4], right[BK][BN];
  const int thread = static_cast<int>(threadIdx.x), tx = thread % across, ty = thread / across;
  const int m0 = static_cast<int>(blockIdx.y) * BM, n0 = static_cast<int>(blockIdx.x) * BN;
  float sum[TM][TN] = {};
  for (int k0 = 0; k0 < k; k0 += BK) {
    for (int i = thread; i < BM * BK; i += threads)
      left[i % BK][i / BK] = a[static_cast<size_t>(m0 + i / BK) * k + k0 + i % BK];
    for (int i = thread; i < BK * BN; i += threads)
      right[i / BN][i % BN] = b[static_cast<size_t>(k0 + i / BN) * n + n0 + i % BN];
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      float p[TM], q[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i)
        p[i] = left[kk][ty * TM + i];
#pragma unroll
      for (int j = 0; j < TN; ++j)
        q[j] = right[kk][tx + j * across];
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
          sum[i][j] = fmaf(p[i], q[j], sum[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j)
      c[static_cast<size_t>(m0 + ty * TM + i) * n + n0 + tx + j * across] = sum[i][j];
}
