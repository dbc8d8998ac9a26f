// kind: shared memory race
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = in[i];  // OTHER
  out[i] = tile[63 - i];  // FAULT
}
