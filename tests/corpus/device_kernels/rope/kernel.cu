#include <cstdint>

// Turns the pairs (i, i + 64) of each head of 128 by position * 10000^(-i / 64).
extern "C" __global__ void __launch_bounds__(256)
  rope(const float* __restrict__ x, float* __restrict__ y, int heads, int tokens) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= tokens * heads * 64)
    return;
  const int pair = i % 64, position = i / 64 / heads;
  const float angle =
    static_cast<float>(position) * exp2f(-static_cast<float>(pair) * (13.28771238f / 64.f));
  const float c = cosf(angle), s = sinf(angle);
  const size_t at = static_cast<size_t>(i / 64) * 128 + pair;
  const float a = x[at], b = x[at + 64];
  y[at] = a * c - b * s;
  y[at + 64] = a * s + b * c;
}
