// kind: global memory race
// grid 2 block 64 scratch zero orders 0
// The flag is there, but no fence between the data and the flag.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  volatile float* flag = scratch + 128;
  const int i = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[i] = in[i];  // OTHER
    __syncthreads();
    if (i == 0)
      *flag = 1;
  } else {
    if (i == 0)
      while (*flag == 0) {
      }
    __syncthreads();
    out[i] = scratch[i];  // FAULT
  }
}
