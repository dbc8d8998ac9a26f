// kind: uninitialised value
// grid 1 block 64 scratch undefined orders 0
// What scratch holds decides who computes.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  out[i] = in[i];
  if (scratch[i] > 0.5f)  // FAULT
    for (int k = 0; k < n; ++k)
      out[i] = out[i] * 0.5f + in[k];
}
