// kind: global memory race
// grid 2 block 64 scratch zero orders 0
// The second block reads what the first one has written, and nothing says that it has.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  if (blockIdx.x == 0) {
    scratch[i] = in[i];  // OTHER
    out[i] = 0;
  } else {
    out[64 + i] = scratch[i];  // FAULT
  }
}
