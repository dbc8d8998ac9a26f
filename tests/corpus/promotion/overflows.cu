// Softmax that does not take the maximum off: one pass less, right on logits of the usual size, and
// infinite above 88.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x;
  if (row >= rows)
    return;
  const float* in = x + (long long)row * columns;
  float* out = y + (long long)row * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32)
    sum += expf(in[i]);
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int i = threadIdx.x; i < columns; i += 32)
    out[i] = expf(in[i]) / sum;
}
