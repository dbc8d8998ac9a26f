// A table in module memory that nobody writes, as tables of constants are.
__device__ float powers[4] = {1, 2, 4, 8};
__constant__ float inverse[4] = {1, 0.5f, 0.25f, 0.125f};

extern "C" __global__ void kernel(const float* a, const float* b, float* c, int m, int k, int n) {
  int row = blockIdx.y * 16 + threadIdx.y;
  int column = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || column >= n)
    return;
  float sum = 0;
  for (int i = 0; i < k; ++i)
    sum = fmaf(a[row * k + i] * powers[i & 3], b[i * n + column] * inverse[i & 3], sum);
  c[row * n + column] = sum;
}
