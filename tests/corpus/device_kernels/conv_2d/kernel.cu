#include <cstdint>

// A 3 x 3 convolution of C channels to F, planes of 32 x 32 cells a block, zeros outside.
extern "C" __global__ void __launch_bounds__(256) conv_2d(const float* __restrict__ x,
  const float* __restrict__ w, float* __restrict__ y, int channels, int filters, int size) {
  __shared__ float cells[34][35];
  __shared__ float taps[9];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int across = size / 32, c0 = static_cast<int>(blockIdx.x) % across * 32;
  const int r0 = static_cast<int>(blockIdx.x) / across * 32, filter = static_cast<int>(blockIdx.y);
  float sum[4] = {};
  for (int c = 0; c < channels; ++c) {
    for (int i = ty * 32 + tx; i < 34 * 34; i += 256) {
      const int row = r0 + i / 34 - 1, column = c0 + i % 34 - 1;
      const bool inside = row >= 0 && row < size && column >= 0 && column < size;
      cells[i / 34][i % 34] =
        inside ? x[(static_cast<size_t>(c) * size + row) * size + column] : 0.f;
    }
    if (ty == 0 && tx < 9)
      taps[tx] = w[(filter * channels + c) * 9 + tx];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int t = 0; t < 9; ++t)
        sum[u] = fmaf(cells[ty + u * 8 + t / 3][tx + t % 3], taps[t], sum[u]);
    __syncthreads();
  }
#pragma unroll
  for (int u = 0; u < 4; ++u)
    y[(static_cast<size_t>(filter) * size + r0 + ty + u * 8) * size + c0 + tx] = sum[u];
}
