// Wrong on purpose, and right by luck: threads of two warps read from shared memory what others write, with
// no barrier between. Whichever value they see, the answer is the same.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  __shared__ float seen[64];
  int row = blockIdx.x;
  int lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  const float* in = x + (long long)row * columns;
  float* out = y + (long long)row * columns;
  seen[threadIdx.x] = 0;
  __syncthreads();
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32)
    largest = fmaxf(largest, in[i]);
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  seen[threadIdx.x] = largest;
  if (seen[63 - threadIdx.x] > 3.0e38f)
    largest = 0;
  float sum = 0;
  for (int i = lane; i < columns; i += 32)
    sum += expf(in[i] - largest);
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int i = threadIdx.x; i < columns; i += 64)
    out[i] = expf(in[i] - largest) / sum;
}
