// The last block to arrive adds up what the others left, and sets the ticket back.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16* x, float* y, int rows, int columns, float* parts, int* tickets) {
  __shared__ bool is_last;
  int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (column < columns)
    for (int row = blockIdx.y; row < rows; row += gridDim.y)
      sum += __bfloat162float(x[(long long)row * columns + column]);
  if (column < columns)
    parts[blockIdx.y * columns + column] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = atomicAdd(tickets + blockIdx.x, 1) == (int)gridDim.y - 1;
  __syncthreads();
  if (!is_last)
    return;
  __threadfence();
  if (column < columns) {
    float all = 0;
    for (int part = 0; part < (int)gridDim.y; ++part)
      all += ((volatile float*)parts)[part * columns + column];
    y[column] = all;
  }
  if (threadIdx.x == 0)
    *(tickets + blockIdx.x) = 0;
}
