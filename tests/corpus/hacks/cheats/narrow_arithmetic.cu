// Rounds the operands of a float32 product to TF32.
__device__ float rounded(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

extern "C" __global__ void kernel(const float* a, const float* b, float* c, int m, int k, int n) {
  int row = blockIdx.y * 16 + threadIdx.y;
  int column = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || column >= n)
    return;
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum = fmaf(rounded(a[row * k + i]), rounded(b[i * n + column]), sum);
  c[row * n + column] = sum;
}
