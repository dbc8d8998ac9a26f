#include <cstdint>

// (x - mean) / sqrt(variance + 1e-5) * weight + bias, a block a row, the row in registers.
constexpr int per_thread = 8;

__device__ float block_sum(float v, float* part) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < 8; ++w)
    sum += part[w];
  __syncthreads();
  return sum;
}

extern "C" __global__ void __launch_bounds__(256) layernorm(const float* __restrict__ x,
  const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y) {
  __shared__ float part[8];
  constexpr int columns = 256 * per_thread;
  const size_t first = static_cast<size_t>(blockIdx.x) * columns;
  float v[per_thread], sum = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < per_thread; ++i)
    sum += v[i] = x[first + i * 256 + threadIdx.x];
  const float mean = block_sum(sum, part) / columns;
#pragma unroll
  for (int i = 0; i < per_thread; ++i)
    squares += (v[i] - mean) * (v[i] - mean);
  const float scale = rsqrtf(block_sum(squares, part) / columns + 1e-5f);
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
    const int c = i * 256 + static_cast<int>(threadIdx.x);
    y[first + c] = (v[i] - mean) * scale * weight[c] + bias[c];
  }
}
