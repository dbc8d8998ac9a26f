#include <cstdint>

// Steps until z^2 + c leaves a circle, at most LIMIT, for a grid of points: lanes leave at odds.
extern "C" __global__ void __launch_bounds__(256) escape_time(
  const float* __restrict__ re, const float* __restrict__ im, int* __restrict__ steps, int n) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= n)
    return;
  const float a = re[i], b = im[i];
  float x = 0, y = 0;
  int s = 0;
  while (s < LIMIT && __fadd_rn(__fmul_rn(x, x), __fmul_rn(y, y)) <= 4.f) {
    const float next = __fadd_rn(__fadd_rn(__fmul_rn(x, x), -__fmul_rn(y, y)), a);
    y = __fadd_rn(__fmul_rn(__fmul_rn(2.f, x), y), b);
    x = next;
    ++s;
  }
  steps[i] = s;
}
