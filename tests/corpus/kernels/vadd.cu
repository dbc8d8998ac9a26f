// c = a + b, one element a thread.
extern "C" __global__ void vadd(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    c[i] = a[i] + b[i];
}
