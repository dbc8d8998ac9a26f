#include <cstdint>

// Steps of n -> n / 2 or 3 n + 1 down to 1, for numbers below 2^20: 64-bit integers, uneven loops.
extern "C" __global__ void __launch_bounds__(256)
  collatz(const int* __restrict__ x, int* __restrict__ steps, int n) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= n)
    return;
  uint64_t v = static_cast<uint64_t>(x[i]) + 1;
  int s = 0;
  while (v != 1) {
    v = (v & 1) != 0 ? 3 * v + 1 : v / 2;
    ++s;
  }
  steps[i] = s;
}
