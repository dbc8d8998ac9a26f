// kind: trap
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  out[threadIdx.x] = in[threadIdx.x];
  if (n > 0)
    __trap();  // FAULT
}
