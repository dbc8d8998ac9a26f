// One row a block: maximum, sum and quotient, reduced in dynamic shared memory.
#include <math.h>
extern "C" __global__ void softmax_row(const float* __restrict__ x, float* __restrict__ y, int columns) {
  extern __shared__ float cell[];
  x += (size_t)blockIdx.x * columns;
  y += (size_t)blockIdx.x * columns;
  float best = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    best = fmaxf(best, x[i]);
  cell[threadIdx.x] = best;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      cell[threadIdx.x] = fmaxf(cell[threadIdx.x], cell[threadIdx.x + half]);
  }
  __syncthreads();
  best = cell[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    sum += __expf(x[i] - best);
  cell[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      cell[threadIdx.x] += cell[threadIdx.x + half];
  }
  __syncthreads();
  const float scale = 1.0f / cell[0];
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[i] = __expf(x[i] - best) * scale;
}
