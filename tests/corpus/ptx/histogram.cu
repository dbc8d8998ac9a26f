// Counts bytes: atomics in shared memory, then one addition a bin in global memory.
extern "C" __global__ void histogram(
  const unsigned char* __restrict__ x, unsigned* bins, int count) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i] != 0)
      atomicAdd(&bins[i], local[i]);
}
