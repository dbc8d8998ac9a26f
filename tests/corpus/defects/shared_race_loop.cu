// kind: shared memory race
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) {
    tile[i] = in[k * 64 + i];  // FAULT
    __syncthreads();
    sum += tile[63 - i];  // OTHER
  }
  out[i] = sum;
}
