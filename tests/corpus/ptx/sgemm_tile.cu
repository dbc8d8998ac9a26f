// C = A B in single precision; 32x32 tile a block, 2x2 elements a thread, 16x16 threads. Sizes are
// multiples of 32.
extern "C" __global__ void __launch_bounds__(256) sgemm_tile(const float* __restrict__ a,
  const float* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ float left[32][33], right[32][32];
  const int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;
  float sum[2][2] = {};
  for (int step = 0; step < k; step += 32) {
    for (int i = thread; i < 1024; i += 256) {
      left[i / 32][i % 32] = a[(size_t)(row + i / 32) * k + step + i % 32];
      right[i / 32][i % 32] = b[(size_t)(step + i / 32) * n + column + i % 32];
    }
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < 32; i++) {
      const float l[2] = {left[2 * y][i], left[2 * y + 1][i]};
      const float r[2] = {right[i][2 * x], right[i][2 * x + 1]};
      for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++)
          sum[p][q] += l[p] * r[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 2; p++)
    *(float2*)&c[(size_t)(row + 2 * y + p) * n + column + 2 * x] = make_float2(sum[p][0], sum[p][1]);
}
