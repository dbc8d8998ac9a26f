// kind: write to read-only memory
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  out[threadIdx.x] = atomicExch(const_cast<float*>(in) + threadIdx.x, 1.f);  // FAULT
}
