// kind: deadlock
// grid 1 block 64 scratch undefined orders 0
// Each warp waits at a barrier that the other one never reaches.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  if (i < 32)
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT
  else
    asm volatile("bar.sync 2, 64;" ::: "memory");  // FAULT
  out[i] = in[i];
}
