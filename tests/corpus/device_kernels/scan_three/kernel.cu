#include <cstdint>

// Running sums of everything in three launches: sums of tiles, their running sums, then the tiles.
__device__ int block_scan(int v, int* sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d)
      v += other;
  }
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < warp; ++w)
    before += sums[w];
  __syncthreads();
  return v + before;
}

extern "C" __global__ void __launch_bounds__(256)
  tile_sums(const int* __restrict__ x, int* __restrict__ sums) {
  __shared__ int part[8];
  const int4 v = reinterpret_cast<const int4*>(x)[blockIdx.x * 256 + threadIdx.x];
  const int all = block_scan(v.x + v.y + v.z + v.w, part);
  if (threadIdx.x == 255)
    sums[blockIdx.x] = all;
}

extern "C" __global__ void __launch_bounds__(256) scan_sums(int* __restrict__ sums, int count) {
  __shared__ int part[8];
  __shared__ int carry;
  if (threadIdx.x == 0)
    carry = 0;
  __syncthreads();
  for (int first = 0; first < count; first += 256) {
    const int i = first + static_cast<int>(threadIdx.x);
    const int own = i < count ? sums[i] : 0;
    const int all = block_scan(own, part);
    const int start = carry;
    if (i < count)
      sums[i] = start + all - own;
    __syncthreads();
    if (threadIdx.x == 255)
      carry = start + all;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(256)
  scan_tiles(const int* __restrict__ x, const int* __restrict__ sums, int* __restrict__ y) {
  __shared__ int part[8];
  const unsigned i = blockIdx.x * 256 + threadIdx.x;
  const int4 v = reinterpret_cast<const int4*>(x)[i];
  const int own = v.x + v.y + v.z + v.w;
  int before = sums[blockIdx.x] + block_scan(own, part) - own;
  int4 out;
  out.x = before + v.x;
  out.y = out.x + v.y;
  out.z = out.y + v.z;
  out.w = out.z + v.w;
  reinterpret_cast<int4*>(y)[i] = out;
}
