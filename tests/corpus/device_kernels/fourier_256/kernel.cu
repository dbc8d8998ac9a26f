#include <cstdint>

// Fourier transform of rows of 256 complex numbers in shared memory, radix two, a block of 128 a
// row.
extern "C" __global__ void __launch_bounds__(128)
  fourier_256(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float2 row[256];
  const int thread = static_cast<int>(threadIdx.x);
  const float2* from = reinterpret_cast<const float2*>(x) + static_cast<size_t>(blockIdx.x) * 256;
  for (int i = thread; i < 256; i += 128)
    row[__brev(static_cast<unsigned>(i)) >> 24] = from[i];
  for (int half = 1; half < 256; half *= 2) {
    __syncthreads();
    const int at = thread % half, low = thread / half * 2 * half + at;
    float s, c;
    sincosf(-3.14159265f * static_cast<float>(at) / static_cast<float>(half), &s, &c);
    const float2 a = row[low], b = row[low + half];
    const float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
    row[low] = make_float2(a.x + turned.x, a.y + turned.y);
    row[low + half] = make_float2(a.x - turned.x, a.y - turned.y);
  }
  __syncthreads();
  float2* to = reinterpret_cast<float2*>(y) + static_cast<size_t>(blockIdx.x) * 256;
  for (int i = thread; i < 256; i += 128)
    to[i] = row[i];
}
