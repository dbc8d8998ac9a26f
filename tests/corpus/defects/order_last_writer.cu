// kind: order dependent
// grid 16 block 64 scratch zero orders 4
// Atomic, but the last one wins.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  if (threadIdx.x == 0) {
    atomicExch(scratch, in[blockIdx.x]);
    __threadfence();
    if (atomicAdd(scratch + 1, 1.f) == 15.f)
      out[0] = atomicAdd(scratch, 0.f);
  }
}
