#include <math.h>

// Softmax of each row; a block a row, a power of two of threads, one float of dynamic shared memory a
// thread.
template <class Combine>
__device__ float over_block(float mine, float* scratch, Combine combine) {
  scratch[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

extern "C" __global__ void softmax_row(const float* __restrict__ x, float* __restrict__ y, int columns) {
  extern __shared__ float scratch[];
  const float* from = x + static_cast<size_t>(blockIdx.x) * columns;
  float* to = y + static_cast<size_t>(blockIdx.x) * columns;
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);

  float largest = -INFINITY;
  for (int i = first; i < columns; i += step)
    largest = fmaxf(largest, from[i]);
  largest = over_block(largest, scratch, [](float a, float b) { return fmaxf(a, b); });

  float sum = 0.f;
  for (int i = first; i < columns; i += step)
    sum += __expf(from[i] - largest);
  sum = over_block(sum, scratch, [](float a, float b) { return a + b; });

  const float scale = 1.f / sum;
  for (int i = first; i < columns; i += step)
    to[i] = __expf(from[i] - largest) * scale;
}
