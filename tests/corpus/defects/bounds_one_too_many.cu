// kind: out of bounds
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  for (int i = threadIdx.x; i <= n; i += blockDim.x)
    out[i] = in[i];  // FAULT
}
