#include <cstdint>

// softmax(Q K^T / 8) V of one head of 64 in three launches with the scores in memory.
extern "C" __global__ void __launch_bounds__(256) scores(
  const float* __restrict__ q, const float* __restrict__ k, float* __restrict__ s, int length) {
  __shared__ float rows[16][65], columns[16][65];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int r0 = static_cast<int>(blockIdx.y) * 16, c0 = static_cast<int>(blockIdx.x) * 16;
  for (int d = tx; d < 64; d += 16) {
    rows[ty][d] = q[static_cast<size_t>(r0 + ty) * 64 + d];
    columns[ty][d] = k[static_cast<size_t>(c0 + ty) * 64 + d];
  }
  __syncthreads();
  float sum = 0;
  for (int d = 0; d < 64; ++d)
    sum += rows[ty][d] * columns[tx][d];
  s[static_cast<size_t>(r0 + ty) * length + c0 + tx] = sum * 0.125f;
}

extern "C" __global__ void __launch_bounds__(256) weights(float* __restrict__ s, int length) {
  const int row = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= length)
    return;
  float* p = s + static_cast<size_t>(row) * length;
  float top = -3.4e38f, sum = 0;
  for (int i = lane; i < length; i += 32)
    top = fmaxf(top, p[i]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  for (int i = lane; i < length; i += 32) {
    const float e = __expf(p[i] - top);
    sum += e;
    p[i] = e;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, d);
  const float scale = 1.f / sum;
  for (int i = lane; i < length; i += 32)
    p[i] *= scale;
}

extern "C" __global__ void __launch_bounds__(256) values(
  const float* __restrict__ s, const float* __restrict__ v, float* __restrict__ y, int length) {
  __shared__ float p[4][64];
  const int d = static_cast<int>(threadIdx.x) % 64, r = static_cast<int>(threadIdx.x) / 64;
  const size_t row = static_cast<size_t>(blockIdx.x) * 4 + r;
  float sum = 0;
  for (int j0 = 0; j0 < length; j0 += 64) {
    p[r][d] = s[row * length + j0 + d];
    __syncthreads();
    for (int j = 0; j < 64; ++j)
      sum += p[r][j] * v[static_cast<size_t>(j0 + j) * 64 + d];
    __syncthreads();
  }
  y[row * 64 + d] = sum;
}
