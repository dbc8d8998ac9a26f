// kind: output read before written
// grid 1 block 64 scratch undefined orders 0
// The sum begins with whatever the output held.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  atomicAdd(&out[0], in[threadIdx.x]);  // FAULT
}
