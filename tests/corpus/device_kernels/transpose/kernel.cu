#include <cstdint>

// out[c][r] = in[r][c]. KIND 0: no tile; 1: a tile of 32 x 32; 2: padded by one; 3: swizzled
// columns.
extern "C" __global__ void __launch_bounds__(256)
  transpose(const float* __restrict__ in, float* __restrict__ out, int height, int width) {
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int c0 = static_cast<int>(blockIdx.x) * 32, r0 = static_cast<int>(blockIdx.y) * 32;
#if KIND == 0
  for (int i = ty; i < 32; i += 8)
    out[static_cast<size_t>(c0 + tx) * height + r0 + i] =
      in[static_cast<size_t>(r0 + i) * width + c0 + tx];
#else
  __shared__ float tile[32][KIND == 2 ? 33 : 32];
  for (int i = ty; i < 32; i += 8)
    tile[i][KIND == 3 ? tx ^ i : tx] = in[static_cast<size_t>(r0 + i) * width + c0 + tx];
  __syncthreads();
  for (int i = ty; i < 32; i += 8)
    out[static_cast<size_t>(c0 + i) * height + r0 + tx] = tile[tx][KIND == 3 ? i ^ tx : i];
#endif
}
