// As stream-K does: one block waits for the flag of another, adds its part and takes the flag down.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16* x, float* y, int rows, int columns, float* parts, int* flags) {
  int column = blockIdx.x * 32 + threadIdx.x;
  const bool gives = blockIdx.y == 0;
  float sum = 0;
  if (column < columns)
    for (int row = blockIdx.y; row < rows; row += 2)
      sum += __bfloat162float(x[(long long)row * columns + column]);
  if (gives) {
    if (column < columns)
      parts[column] = sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
      atomicExch(flags + blockIdx.x, 1);
    return;
  }
  if (threadIdx.x == 0)
    while (atomicAdd(flags + blockIdx.x, 0) == 0) {
    }
  __syncthreads();
  __threadfence();
  if (column < columns)
    y[column] = sum + ((volatile float*)parts)[column];
  if (threadIdx.x == 0)
    atomicExch(flags + blockIdx.x, 0);
}
