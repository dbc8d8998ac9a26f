#include <cstdint>

// A polynomial of degree 32 with coefficients 1 / (i + 1), in double.
extern "C" __global__ void __launch_bounds__(256)
  horner_fp64(const double* __restrict__ x, double* __restrict__ y, int n) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= n)
    return;
  const double v = x[i];
  double sum = 0;
#pragma unroll
  for (int d = 32; d >= 0; --d)
    sum = fma(sum, v, 1.0 / (d + 1));
  y[i] = sum;
}
