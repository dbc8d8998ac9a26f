// kind: instruction limit
// grid 1 block 64 scratch undefined orders 0 limit 100000
// Halving never reaches a negative number.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  float x = in[threadIdx.x] * in[threadIdx.x] + 1;
  int steps = 0;
  while (x >= 0) {  // FAULT
    x = x * 0.5f + 1;  // FAULT
    ++steps;  // FAULT
  }
  out[threadIdx.x] = x + steps;
}
