// Softmax of a row by one warp, plainly but for the second exponential.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x;
  if (row >= rows)
    return;
  const float* in = x + (long long)row * columns;
  float* out = y + (long long)row * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += 32)
    largest = fmaxf(largest, in[i]);
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32)
    sum += expf(in[i] - largest);
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int i = threadIdx.x; i < columns; i += 32)
    out[i] = __expf(in[i] - largest) / sum;
}
