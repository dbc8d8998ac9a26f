// kind: global memory race
// grid 2 block 64 scratch undefined orders 0
// Two blocks write different values to one place.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  if (threadIdx.x == 0)
    out[0] = in[blockIdx.x];  // FAULT
}
