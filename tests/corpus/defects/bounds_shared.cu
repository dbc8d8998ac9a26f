// kind: out of bounds
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i + n / 8] = in[i];  // FAULT
  __syncthreads();
  out[i] = tile[i];
}
