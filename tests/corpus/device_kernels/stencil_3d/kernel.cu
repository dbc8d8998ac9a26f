#include <cstdint>

// Seven-point sum of a box whose border is copied. MARCHING: a thread walks along the depth and
// keeps three planes' cells in registers; otherwise a thread does one cell.
extern "C" __global__ void __launch_bounds__(256)
  stencil_3d(const float* __restrict__ x, float* __restrict__ y, int depth, int height, int width) {
  const int c = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int r = static_cast<int>(blockIdx.y * 8 + threadIdx.y);
  if (r >= height || c >= width)
    return;
  const size_t plane = static_cast<size_t>(height) * width;
  const size_t at = static_cast<size_t>(r) * width + c;
  const bool edge = r == 0 || c == 0 || r + 1 == height || c + 1 == width;
#if MARCHING
  float before = 0, now = x[at];
  for (int z = 0; z < depth; ++z) {
    const size_t place = z * plane + at;
    const float after = z + 1 < depth ? x[place + plane] : 0.f;
    if (edge || z == 0 || z + 1 == depth)
      y[place] = now;
    else
      y[place] = 0.4f * now
        + 0.1f
          * (before + after + x[place - 1] + x[place + 1] + x[place - width] + x[place + width]);
    before = now;
    now = after;
  }
#else
  const int z = static_cast<int>(blockIdx.z);
  const size_t place = z * plane + at;
  if (edge || z == 0 || z + 1 == depth)
    y[place] = x[place];
  else
    y[place] = 0.4f * x[place]
      + 0.1f
        * (x[place - plane] + x[place + plane] + x[place - 1] + x[place + 1] + x[place - width]
          + x[place + width]);
#endif
}
