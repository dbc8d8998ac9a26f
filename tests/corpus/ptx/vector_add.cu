// c = a + b, one element a thread, the last block only in part.
extern "C" __global__ void vector_add(
  const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    c[i] = a[i] + b[i];
}
