// kind: deadlock
// grid 1 block 64 scratch zero orders 0
// Nobody ever sets the flag.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  volatile float* flag = scratch;
  while (*flag == 0) {  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
