// kind: uninitialised value
// grid 1 block 64 scratch undefined orders 0
// Half of the tile is never written.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ float tile[128];
  const int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  const float sum = tile[i] + tile[i + 64];  // OTHER
  out[i] = sum * 2;  // FAULT
}
