// kind: instruction limit
// grid 1 block 64 scratch undefined orders 0 limit 100000
// A counter never comes to its end.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  volatile float* seen = out;
  unsigned x = n;
  while (x != 0) {  // FAULT
    x = (x * 1664525u + 1013904223u) | 1u;  // FAULT
    seen[threadIdx.x] = static_cast<float>(x);  // FAULT
  }
  out[threadIdx.x] = static_cast<float>(x);
}
