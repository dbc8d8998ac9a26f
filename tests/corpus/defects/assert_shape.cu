// kind: assertion
// grid 1 block 64 scratch undefined orders 0
#include <cassert>
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  assert(n % 100 == 0);  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
