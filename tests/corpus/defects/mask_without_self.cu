// kind: bad mask
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  out[i] = __shfl_sync(0xfffffffe, in[i], 1);  // FAULT
}
