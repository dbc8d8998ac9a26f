// kind: barrier divergence
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 40; @p bar.sync 0; }" ::"r"(i) : "memory");  // FAULT
  out[i] = in[i];
}
