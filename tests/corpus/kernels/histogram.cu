// bins[v] += how often byte v occurs: counted in shared memory, then added to the whole.
extern "C" __global__ void histogram(
    const unsigned char* __restrict__ x, unsigned* __restrict__ bins, int count) {
  __shared__ unsigned mine[256];
  for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x)
    mine[bin] = 0;
  __syncthreads();
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += stride)
    atomicAdd(&mine[x[i]], 1u);
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x)
    if (mine[bin] != 0)
      atomicAdd(&bins[bin], mine[bin]);
}
