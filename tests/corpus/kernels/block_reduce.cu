// *sum += all elements: a strided loop, shuffles in a warp, shared memory between warps, one atomic a
// block.
__device__ float sum_of_warp(float v) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, distance);
  return v;
}

extern "C" __global__ void block_reduce(const float* __restrict__ x, float* __restrict__ sum, int count) {
  __shared__ float of_warp[32];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  float mine = 0.f;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += stride)
    mine += x[i];
  mine = sum_of_warp(mine);
  if (lane == 0)
    of_warp[warp] = mine;
  __syncthreads();
  if (warp == 0) {
    const int warps = static_cast<int>((blockDim.x + 31) / 32);
    const float all = sum_of_warp(lane < warps ? of_warp[lane] : 0.f);
    if (lane == 0)
      atomicAdd(sum, all);
  }
}
