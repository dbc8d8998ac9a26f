// kind: barrier divergence
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  if (i % 32 < 16)
    asm volatile("bar.sync 1;" ::: "memory");  // FAULT
  else
    asm volatile("bar.sync 2;" ::: "memory");  // FAULT
  out[i] = in[i];
}
